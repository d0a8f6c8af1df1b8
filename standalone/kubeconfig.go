package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/pawl-dev/pawl/standalone/internal/datadir"
	"github.com/pawl-dev/pawl/standalone/internal/pki"
)

// kubeconfigName is the name of the one context in pawld's kubeconfig.
const kubeconfigName = "pawl"

// checkKubeconfig says whether a kubeconfig can be written to path without
// harm: a file with other contexts in it is not pawld's to replace.
func checkKubeconfig(path string) error {
	dir := filepath.Dir(path)
	if err := unix.Access(dir, unix.W_OK|unix.X_OK); err != nil {
		return fmt.Errorf("--kubeconfig %s: directory %s: %w; choose a path that you may write to", path, dir, err)
	}
	if _, err := os.Lstat(path); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	old, err := clientcmd.LoadFromFile(path)
	if err != nil {
		return fmt.Errorf("--kubeconfig %s: there is something that is no kubeconfig: %w; choose another path", path, err)
	}
	for name := range old.Contexts {
		if name != kubeconfigName {
			return fmt.Errorf("--kubeconfig %s: it holds the context %q, which would be lost; choose another path", path, name)
		}
	}
	return nil
}

// writeKubeconfig writes the administrator's access to host to path.
func writeKubeconfig(path, host string, p *pki.PKI) error {
	config := api.NewConfig()
	config.Clusters[kubeconfigName] = &api.Cluster{Server: host, CertificateAuthorityData: p.Authority.CertPEM}
	config.AuthInfos[kubeconfigName] = &api.AuthInfo{ClientCertificateData: p.Admin.CertPEM, ClientKeyData: p.Admin.KeyPEM}
	config.Contexts[kubeconfigName] = &api.Context{Cluster: kubeconfigName, AuthInfo: kubeconfigName}
	config.CurrentContext = kubeconfigName
	data, err := clientcmd.Write(*config)
	if err != nil {
		return fmt.Errorf("encode kubeconfig: %w", err)
	}
	if err := datadir.WriteFile(path, data); err != nil {
		return fmt.Errorf("--kubeconfig: %w", err)
	}
	return nil
}

// adminConfig is the administrator's access to host, without a limit on
// requests.
func adminConfig(host string, p *pki.PKI) *rest.Config {
	return &rest.Config{
		Host: host,
		QPS:  -1,
		TLSClientConfig: rest.TLSClientConfig{
			CAData:   p.Authority.CertPEM,
			CertData: p.Admin.CertPEM,
			KeyData:  p.Admin.KeyPEM,
		},
	}
}
