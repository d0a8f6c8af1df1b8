# Pawl's build. `make` lists the targets. Programs go to bin/, tools to
# bin/tools/; nothing is installed and no port is fixed, so that several checkouts
# and a running pawld do not meet.

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
KUBERNETES := $(shell sed -n 's/^.*k8s\.io\/kubernetes v\([0-9.]*\).*/\1/p' standalone/go.mod | head -1)

# Where `make up` keeps its data.
DIR ?= .pawl
# Which mutants `make mutants` makes: a regular expression for their names.
MUTANTS ?=
# How long `make fuzz` takes, in seconds; which scenarios are played, under how many seeds.
FUZZTIME ?= 30
SEEDS ?= 20
SCENARIOS ?= scenarios
# How far `make states` and `make states-bite` explore: slots/users/faults, on a path, of
# pools in service; with drift: of those whose template has just changed, and with fresh:
# of new ones.
STATES_BOUNDS ?= 3/1/1,2/2/1,drift:2/1/1,drift:3/0/1,drift:3/1/0,fresh:2/1/0,fresh:1/1/1
STATES_CI ?= 2/1/1,drift:3/1/0,drift:3/0/1,drift:1/1/1,fresh:2/0/1
STATES_BITE ?= $(STATES_CI)
# How many worlds `make worlds` draws, and from which seed on.
WORLDS ?= 100000
SEED ?= 1

kubernetes := $(subst ., ,$(KUBERNETES))
kubeflags := \
	-X k8s.io/component-base/version.gitVersion=v$(KUBERNETES) \
	-X k8s.io/component-base/version.gitMajor=$(word 1,$(kubernetes)) \
	-X k8s.io/component-base/version.gitMinor=$(word 2,$(kubernetes)) \
	-X k8s.io/component-base/version.gitTreeState=clean

tally := bin/tools/tally
mutants := bin/tools/mutants
golangci := $(CURDIR)/bin/tools/golangci-lint
generators := bin/tools/controller-gen bin/tools/crd-ref-docs
shells := .ci/run $(wildcard tools/*.sh)
# Packages with tests that need a real API server.
integration = $(shell grep -rl --include='*_test.go' '^//go:build integration' cmd internal examples 2>/dev/null | xargs -r -n1 dirname | sort -u | sed 's/^/.\//')
# Linters that would analyse everything that is imported from its source: for
# standalone, all of Kubernetes. go vet does the most important of it, cached.
fromsource := govet,staticcheck,bodyclose,contextcheck,nilerr,nilnesserr,noctx,gosec,unparam,spancheck,rowserrcheck,sqlclosecheck

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

## Build

.PHONY: build
build: pawl pawld ## bin/pawl and bin/pawld; Kubernetes takes five to six minutes, once

.PHONY: pawl
pawl: ## bin/pawl: the command line and the operator
	@tools/compile.sh pawl cmd/pawl $(CURDIR)/bin/pawl -ldflags '-X main.release=$(VERSION)'

.PHONY: pawld
pawld: ## bin/pawld: the same with a Kubernetes API server and etcd inside
	@nice tools/compile.sh pawld standalone $(CURDIR)/bin/pawld -ldflags '-s -w -X main.release=$(VERSION) $(kubeflags)'

.PHONY: quickstart
quickstart:
	@go build -o bin/pawl-quickstart-server ./examples/quickstart/server

.PHONY: generate
generate: $(generators) ## write generated files: deepcopy functions, CRDs, docs/api.md
	@tools/generate.sh .

.PHONY: clean
clean: ## remove bin/, and nothing else
	rm -rf bin

## Run

.PHONY: demo
demo: build quickstart ## a pool of processes that rolls, in under a minute
	@start=$$(date +%s); go run ./examples/quickstart/demo -pawl bin/pawl -pawld bin/pawld && \
	echo "demo: every promise held, in $$(($$(date +%s) - start)) s"

.PHONY: up
up: build quickstart ## start pawld on DIR (.pawl) with the quickstart's pool, leave it running
	@PATH="$(CURDIR)/bin:$$PATH" tools/up.sh bin/pawld $(DIR)
	@go run ./examples/quickstart/demo -apply $(DIR)/kubeconfig

.PHONY: down
down: ## stop the pawld of DIR
	@tools/down.sh $(DIR)

## Test

# The long compilation of Kubernetes goes on beside what does not need it.
.PHONY: test
test: ## everything below, the cheap first; of the random worlds and the mutants a sample
	@start=$$(date +%s); \
	$(MAKE) --no-print-directory fmt-check layers verify && \
	$(MAKE) --no-print-directory -j2 build test-beside && \
	$(MAKE) --no-print-directory scenarios states-ci && $(MAKE) --no-print-directory worlds WORLDS=20000 && $(MAKE) --no-print-directory mutants MUTANTS='^rule-' && $(MAKE) --no-print-directory scenarios-live test-standalone test-integration demo vet-standalone lint-standalone && \
	s=$$(($$(date +%s) - start)) && \
	echo "test: everything passed in $$((s / 60)) min $$((s % 60)) s"

.PHONY: test-beside
test-beside:
	@for target in test-unit vet-root lint-root fuzz; do $(MAKE) --no-print-directory $$target || exit; done

.PHONY: test-unit
test-unit: $(tally) ## unit and property tests, under the race detector
	@$(tally) test-unit go test -json -race -short ./...

.PHONY: test-standalone
test-standalone: $(tally) ## unit tests of pawld's own parts
	@$(tally) test-standalone go test -C standalone -json ./internal/...

.PHONY: test-integration
test-integration: $(tally) pawld ## tests on a real API server, pawld's
	@PAWLD=$(CURDIR)/bin/pawld $(tally) test-integration go test -json -race -tags integration -timeout 20m $(integration)

.PHONY: scenarios
scenarios: pawl ## play the scenario files, each under SEEDS seeds
	@bin/pawl simulate --allow-waiting --seeds $(SEEDS) $(SCENARIOS)

.PHONY: mutants
mutants: $(mutants) ## break the engine in many ways, one by one, and see the tests notice
	@$(mutants) -run '$(MUTANTS)' tools/mutants

.PHONY: mutants-all
mutants-all: $(mutants) ## the same, and say all tests and scenarios that notice
	@$(mutants) -all tools/mutants

.PHONY: performance
performance: pawld ## measure what the design promises, into docs/performance.md
	@PAWLD=$(CURDIR)/bin/pawld tools/performance.sh

.PHONY: worlds
worlds: ## draw WORLDS random worlds from SEED on, and check every promise in each
	@tools/worlds.sh $(WORLDS) $(SEED)

.PHONY: states
states: ## explore every state of small pools within STATES_BOUNDS, and check every promise in each
	@go build -o bin/states ./internal/states/cmd/states
	@bin/states -bounds $(STATES_BOUNDS) -dir bin/states-found

.PHONY: states-ci
states-ci: ## the same within STATES_CI, in about a minute
	@$(MAKE) --no-print-directory states STATES_BOUNDS='$(STATES_CI)'

.PHONY: states-bite
states-bite: $(mutants) ## break the engine in many ways, one by one, and see `make states` find it within STATES_BITE
	@$(mutants) -run '$(MUTANTS)' -states $(STATES_BITE) tools/mutants

# Stories of thousands of claims, which take minutes in real time.
LONG := busy-pool-never-stands everything-together healthy-busy-pool-rolls-back-by-itself reuse-under-full-load one-bad-slot-hides-broken-fleet

.PHONY: scenarios-live
scenarios-live: pawl pawld ## play the scenario files on a real API server, with the real controllers, but for the long ones
	@bin/pawl simulate --live --parallel 4 --allow-waiting --pawld bin/pawld $(filter-out $(LONG:%=scenarios/%.yaml),$(wildcard scenarios/*.yaml))

.PHONY: scenarios-live-all
scenarios-live-all: pawl pawld ## the same, with the long ones
	@bin/pawl simulate --live --parallel 4 --allow-waiting --pawld bin/pawld $(SCENARIOS)

.PHONY: fuzz
fuzz: ## run every fuzz test, FUZZTIME seconds in all
	@tools/fuzz.sh $(FUZZTIME)

.PHONY: bench
bench: ## the benchmarks of the engine and of revisions, and how shapes of pools compare
	@tools/bench.sh

## Check

.PHONY: fmt-check
fmt-check: ## gofmt has nothing to change
	@files=$$(find . -name '*.go' -not -path './.*/*'); \
	bad=$$(gofmt -l $$files) && if [ -n "$$bad" ]; then echo "gofmt would change:" && echo "$$bad" && exit 1; fi && \
	echo "fmt-check: $$(echo "$$files" | wc -l) files are formatted"

.PHONY: layers
layers: $(tally) ## imports go in the direction that the design says
	@$(tally) layers go test -json ./internal/layers

.PHONY: vet
vet: vet-root vet-standalone ## go vet, with every build tag

.PHONY: vet-root
vet-root:
	@go vet -tags integration ./...
	@echo "vet: $$(go list -tags integration ./... | wc -l) packages are clean"

.PHONY: vet-standalone
vet-standalone:
	@go vet -C standalone -tags integration ./...
	@echo "vet: standalone is clean"

.PHONY: lint
lint: lint-root lint-standalone ## golangci-lint with all linters, and shellcheck if there is one

.PHONY: fix
fix: bin/tools/golangci-lint ## let the linters change what they can, formatting included
	@$(golangci) run --fix -D kubeapilinter ./... || true

# kubeapilinter is about API types only, and never ends on a type that is a map of
# itself: it is not shown anything else.
.PHONY: lint-root
lint-root: bin/tools/golangci-lint
	@$(golangci) run -D kubeapilinter ./...
	@$(golangci) run --enable-only kubeapilinter ./api/...
	@if command -v shellcheck >/dev/null; then shellcheck $(shells); fi
	@echo "lint: the root module is clean"

.PHONY: lint-standalone
lint-standalone: bin/tools/golangci-lint
	@cd standalone && $(golangci) run -D $(fromsource) ./...
	@echo "lint: standalone is clean"

.PHONY: verify
verify: $(generators) $(mutants) ## generated files are what their source says, and mutants fit the engine
	@tools/verify.sh
	@$(mutants) -check tools/mutants

## Tools

bin/tools/golangci-lint: $(wildcard tools/golangci/*)
	@tools/compile.sh golangci-lint tools/golangci $(CURDIR)/$@

bin/tools/controller-gen: tools/go.mod
	@go build -C tools -o ../$@ sigs.k8s.io/controller-tools/cmd/controller-gen

bin/tools/crd-ref-docs: tools/go.mod
	@go build -C tools -o ../$@ github.com/elastic/crd-ref-docs

bin/tools/tally: $(wildcard tools/tally/*.go)
	@go build -C tools -o ../$@ ./tally

bin/tools/mutants: $(wildcard tools/mutants/*.go)
	@go build -C tools -o ../$@ ./mutants

.PHONY: help
help: ## this list
	@awk '/^## / {print "\n" substr($$0, 4)} \
	/^[a-z-]+:.*## / {name = $$1; sub(":$$", "", name); sub(/^.*## /, ""); printf "  %-18s %s\n", name, $$0}' $(MAKEFILE_LIST)
