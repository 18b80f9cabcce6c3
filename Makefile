# flowhost: build, run and check. `make` alone shows what there is.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-builtin-rules

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
BENCH ?= .
BENCHTIME ?= 1s
FUZZTIME ?= 1m

# Guests: examples/<example>/plugins/<plugin>/ becomes examples/<example>/<plugin>.wasm.
PLUGIN_DIRS := $(patsubst %/main.go,%,$(wildcard examples/*/plugins/*/main.go))
wasm = $(dir $(patsubst %/,%,$(dir $(1))))$(notdir $(1)).wasm
PLUGINS := $(foreach dir,$(PLUGIN_DIRS),$(call wasm,$(dir)))
SHARED := go.mod go.sum $(shell find sdk -name '*.go' -not -name '*_test.go' -not -path '*/testdata/*')
STATICCHECK := go tool -modfile=internal/tools/go.mod staticcheck

.PHONY: help
help: ## Show this list.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: bin/flowhost plugins ## Build bin/flowhost and the examples' plugins.

# Go itself knows what has changed.
.PHONY: bin/flowhost
bin/flowhost:
	@mkdir -p bin
	go build -trimpath -ldflags='-s -w -X github.com/flowhost/flowhost/cmd/flowhost/internal/buildinfo.version=$(VERSION)' -o $@ ./cmd/flowhost

.PHONY: plugins
plugins: $(PLUGINS) ## Build the examples' plugins.

# $(1) is the plugin's folder, $(2) the module made of it. Any Go file of the
# example may be shared by its plugins. The program that builds them must be there,
# but need not be older.
define PLUGIN_RULE
$(2): $(SHARED) $(shell find $(firstword $(subst /plugins/, ,$(1))) -name '*.go' -not -name '*_test.go') | bin/flowhost
	bin/flowhost plugin build $(1) -o $$@ >/dev/null
endef
$(foreach dir,$(PLUGIN_DIRS),$(eval $(call PLUGIN_RULE,$(dir),$(call wasm,$(dir)))))

STD := reach data jq template

# With one toolchain, so that the same source gives the same bytes everywhere.
BUILD_STD = out=$$(mktemp -d); trap 'rm -rf "$$out"' EXIT; \
	for m in $(STD); do GOTOOLCHAIN=go1.26.8 bin/flowhost plugin build plugins/std/$$m -o $$out/$$m.wasm >/dev/null; done

.PHONY: std
std: bin/flowhost ## Build the standard plugins, whose bytes are committed.
	@$(BUILD_STD); go run ./plugins/std/internal/pack plugins/std $(STD:%=$$out/%.wasm)

.PHONY: check-std
check-std: bin/flowhost ## Build the standard plugins again and compare them with the committed bytes.
	@$(BUILD_STD); while read -r m digest; do echo "$${digest#sha256:}  $$out/$$m.wasm"; done < plugins/std/digests \
	| sha256sum --check --quiet || { echo 'plugins/std: the source has changed, run make std' >&2; exit 1; }

.PHONY: run
run: build ## Build, then serve the examples, and the API that one of them reads.
	go build -o bin/etl-api ./examples/etl/api
	@bin/etl-api & api=$$!; trap "kill $$api" EXIT; trap : INT TERM; bin/flowhost run examples

.PHONY: test
test: plugins ## Run all tests.
	go test -p $$(( $$(getconf _NPROCESSORS_ONLN) + 1 )) ./... # some packages wait for disks and servers

.PHONY: test-race
test-race: plugins ## Run all tests under the race detector.
	go test -race -timeout 30m ./...

FILES ?= 10000

.PHONY: test-format
test-format: ## Format FILES (10 000) random flow files and compare what they mean.
	go test -count=1 -timeout 30m -run TestFormatKeepsTheMeaning ./flows -args -format.seeds $(FILES)

.PHONY: test-hostile
test-hostile: ## Attack the host with hostile modules, messages, clients, flow files; prints what each stopped.
	go test -count=1 -v -timeout 2h ./host/internal/hostile -args -all | $(FIGURES)
	go test -count=1 -v -timeout 4h ./internal/hostile -args -all | $(FIGURES)

# The lines of figures, problems and results, without those about the tests' beginnings.
FIGURES := grep -Ev '^=== |^ *--- PASS'

SEEDS ?= 2000

.PHONY: test-yield
test-yield: ## Search SEEDS (2000) random guests for the one that runs longest without a call of the host; Linux.
	go test -count=1 -v -timeout 3h -run TestGuestsYield ./host/internal/wasm -args -worst.seeds $(SEEDS)

DAMAGES ?= 5000

.PHONY: test-damage
test-damage: ## Damage a random file of a stored stream DAMAGES (5000) times: what is lost is reported.
	go test -count=1 -v -timeout 12h -run '^TestDamageIsNeverSilent$$' ./bus/natsd -args -damage.cases $(DAMAGES) | grep -v -- '--- PASS\|=== '

.PHONY: test-compile
test-compile: ## Search MINUTES (30) for functions that take longer to compile than is forecast.
	nice -n 5 go test -count=1 -v -timeout 24h -run 'TestForecastHolds|TestCompileBombs' ./host -args -compile.minutes $(MINUTES)

SHARE ?= 1
SEED ?= 14

.PHONY: test-expressions
test-expressions: ## Measure one in SHARE (1: all) of the worst expressions that the generator makes, and the worst files of 1 MB.
	nice -n 5 go test -count=1 -v -timeout 24h -run 'TestWorst|TestLoadBombs' ./flows -args -load.bytes 1000000 -worst.share $(SHARE) -worst.seed $(SEED)

.PHONY: test-pristine
test-pristine: ## Make 100 000 calls of each kind of guest and look for traces of earlier ones.
	FLOWHOST_LONG=1 go test -race -count=1 -timeout 3h -run TestEveryCallSees ./host

MODE ?= strict
KILLS ?= 500
CUTS ?= 100
MINUTES ?= 30
LOAD ?= 0.8
CRASHTEST := go test -count=1 -v -timeout 24h

.PHONY: test-kill
test-kill: ## Kill the host KILLS (500) times under load, in MODE (strict, relaxed, replicas).
	$(CRASHTEST) -run '^TestKill$$/^$(MODE)$$' ./internal/crashtest -args -kills $(KILLS)

.PHONY: test-marks
test-marks: KILLS = 100
test-marks: ## Kill the host KILLS (100) times while tasks publish, count and write to a database.
	$(CRASHTEST) -run '^TestMarks$$' ./internal/crashtest -args -kills $(KILLS)

.PHONY: test-powerloss
test-powerloss: need-disks ## Cut the power CUTS (100) times under load, in each mode; Linux, needs root and loop devices.
	$(CRASHTEST) -tags powerloss -run '^TestPowerLoss$$' ./internal/crashtest -args -cuts $(CUTS)

.PHONY: test-faults
test-faults: need-disks ## Full, slow and broken disks, lost NATS servers; Linux, needs root, loop devices and strace.
	@command -v strace >/dev/null || { echo 'strace is missing: it puts the faults into the calls (apt-get install strace)' >&2; exit 1; }
	$(CRASHTEST) -tags faults -run '^(TestFullDisk|TestSlowDisk|TestStuckDisk|TestBrokenDisk|TestServerEnds|TestServerHangs)$$' ./internal/crashtest

DEFECT ?=

.PHONY: test-defects
test-defects: MINUTES = 2
test-defects: ## Run known defects of the NATS server, all or DEFECT (its issue's number), for MINUTES (2) each.
	$(CRASHTEST) -tags defects -run '^Test$(DEFECT)' ./internal/crashtest/defects -args -minutes $(MINUTES)

# Packages with tests on databases.
DATABASES := ./internal/reach/sqlreach ./cmd/flowhost/internal/serve ./internal/e2e

.PHONY: test-databases
test-databases: need-databases ## Run the tests of SQL connections on PostgreSQL and MariaDB, which it starts in temporary directories; Linux.
	go test -race -short -count=1 -timeout 20m -tags databases ./internal/reach/sqlreach
	go test -race -count=1 -timeout 20m -tags databases -run TestProbeDatabases ./cmd/flowhost/internal/serve
	go test -count=1 -timeout 20m -tags databases -run 'Database' ./internal/e2e
	go test -count=1 -timeout 20m -tags databases -run TestMillions -v ./internal/reach/sqlreach | grep -v '^=== '

.PHONY: need-databases
need-databases:
	@command -v postgres >/dev/null || ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1 || { echo 'postgres is missing (apt-get install postgresql)' >&2; exit 1; }
	@command -v mariadb-install-db >/dev/null && { command -v mariadbd >/dev/null || [[ -x /usr/sbin/mariadbd ]]; } || \
	  { echo 'mariadbd or mariadb-install-db is missing (apt-get install mariadb-server)' >&2; exit 1; }

.PHONY: need-disks
need-disks:
	@[[ $$(uname -s) == Linux && $$(id -u) == 0 && -e /dev/loop-control ]] || \
	  { echo 'this needs Linux, root and loop devices: it mounts disks that are files' >&2; exit 1; }
	@command -v mkfs.ext4 >/dev/null || { echo 'mkfs.ext4 is missing (apt-get install e2fsprogs)' >&2; exit 1; }

.PHONY: soak
soak: ## Keep the host at LOAD (0.8) of its capacity for MINUTES (30) and look for what grows; Linux.
	$(CRASHTEST) -tags soak -run '^TestSoak$$' ./internal/crashtest -args -minutes $(MINUTES) -load $(LOAD)

.PHONY: test-js
test-js: build ## Run the tests of the JavaScript client; needs Node.js and npm.
	cd internal/e2e/js && npm ci --no-audit --no-fund && FLOWHOST_BIN=$(CURDIR)/bin/flowhost node --test

.PHONY: fuzz
fuzz: ## Run each fuzz target for FUZZTIME (1m).
	@grep -rl --include='*_test.go' '^func Fuzz' . | sort | while read -r file; do \
	  sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' "$$file" | while read -r target; do \
	    echo "$$(dirname "$$file") $$target"; \
	    go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 1s "$$(dirname "$$file")" </dev/null; \
	  done; \
	done

.PHONY: fuzz-door
fuzz-door: ## Run the fuzz targets of operations, and of the file of operations, for FUZZTIME (1m) each.
	go test -run '^$$' -fuzz '^FuzzDoor$$' -fuzztime $(FUZZTIME) -fuzzminimizetime 1s ./host/door
	go test -run '^$$' -fuzz '^FuzzFile$$' -fuzztime $(FUZZTIME) -fuzzminimizetime 1s ./host/internal/doorfile

.PHONY: bench
bench: build ## Run the benchmarks that match BENCH (.), each for BENCHTIME (1s), and measure the program.
	go test -run '^$$' -bench '$(BENCH)' -benchtime $(BENCHTIME) -benchmem ./...
	cd internal/bench && go test -run '^$$' -bench '$(BENCH)' -benchtime $(BENCHTIME) -benchmem ./... && go run .

# The first recipe line notes the state of the tree, the last compares with it.
.PHONY: check
check: ## Check format, vet, lint, layering, build and committed modules; ends with "nothing changed in git".
	@mkdir -p bin && $(TREE_STATE) > bin/.tree-before
	@$(MAKE) --no-print-directory check-format check-vet check-lint check-layers check-build check-std
	@$(TREE_STATE) | diff bin/.tree-before - || { echo 'the checks changed files of the tree' >&2; exit 1; }
	@rm bin/.tree-before
	@echo 'nothing changed in git'

TREE_STATE := { git status --porcelain && git diff HEAD | sha256sum; }

.PHONY: check-format
check-format:
	@unformatted=$$(gofmt -l $$(git ls-files --cached --others --exclude-standard '*.go')); \
	if [[ -n $$unformatted ]]; then echo "run gofmt -w on:" $$unformatted >&2; exit 1; fi

.PHONY: check-vet
check-vet:
	go vet ./...
	go vet -tags powerloss,faults,soak,defects ./internal/crashtest/...
	go vet -tags databases $(DATABASES)
	GOOS=wasip1 GOARCH=wasm go vet ./sdk/... ./examples/... ./plugins/...

.PHONY: check-lint
check-lint:
	$(STATICCHECK) ./...
	$(STATICCHECK) -tags powerloss,faults,soak,defects ./internal/crashtest/...
	$(STATICCHECK) -tags databases $(DATABASES)

.PHONY: check-layers
check-layers:
	go test -count=1 ./internal/archtest

# For another operating system too: what hides behind a build tag shows here.
.PHONY: check-build
check-build: build
	go build ./...
	GOOS=darwin GOARCH=arm64 go build ./...
	cd internal/bench && go vet ./...

.PHONY: clean
clean: ## Remove what the build made.
	rm -rf bin $(PLUGINS)
