#!/bin/sh
# generate.sh OUT writes every generated file below OUT: "." for the repository
# itself, another directory to compare with.
set -eu

out=$1
mkdir -p "$out/api/v1alpha1" "$out/config/crd" "$out/docs"
bin/tools/controller-gen paths=./api/... \
	object output:object:dir="$out/api/v1alpha1" \
	crd output:crd:dir="$out/config/crd"
bin/tools/crd-ref-docs --log-level ERROR --source-path api --config tools/crd-ref-docs.yaml \
	--renderer markdown --output-path "$out/docs/api.md"
