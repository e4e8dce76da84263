# understudy: what a developer runs. `make demo` shows the main job, `make test`
# installs what the tests need and runs all of them.

GO       ?= go
BIN      ?= bin/understudy
VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null)
LDFLAGS   = -s -w -X main.release=$(VERSION)
TOOL      = $(GO) tool -modfile=tools/go.mod
FUZZTIME ?= 20s

.PHONY: build demo test needs lint unit drill campaign fuzz fuzz-keep vuln dist-check dist dist-verify e2e web site bench-smoke bench bench-faults bench-scaling bench-crowd bench-soak bench-overload bench-profile bench-micro pictures agents clean

build: ## one static binary
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $(BIN) ./cmd/understudy

demo: ## fake upstreams that fail, and a client that never notices
	@$(GO) run ./cmd/understudy demo

test: needs lint unit drill fuzz dist-check e2e web site bench-smoke ## everything; .ci/run calls this

needs: ## installs what the tests need and this machine lacks: apt-get as root, or brew
	@sh tools/needs.sh

lint: ## formatting, vet, staticcheck
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { gofmt -l $$(git ls-files '*.go'); echo 'run gofmt -w on these'; exit 1; }
	$(GO) vet ./...
	$(GO) vet -tags e2e ./e2e
	$(GO) vet -tags site ./site
	$(TOOL) staticcheck ./...
	$(TOOL) actionlint

unit: ## all Go tests, with the race detector (gcc), redis-server, tmux for the console, zsh and fish for Tab, mandoc
	@sh tools/unit.sh

drill: ## the drill's scorecards and ten upgrades under load, alone: they measure time
	$(GO) test -timeout 10m -parallel 1 -run '^(TestDrillScripts|TestTenUpgrades.*)$$' ./cmd/understudy

vuln: ## known vulnerabilities in what is called (asks vuln.go.dev, so it is not in make test)
	$(TOOL) govulncheck ./...

campaign: ## a million requests among random faults (docs/campaign.md); SEED=n for the same ones
	GOGC=600 $(GO) test -count 1 -timeout 12h -v -run '^TestCampaign$$' ./internal/campaign -args -seed $(or $(SEED),0) -requests 1000000 -epoch 4000 -clients 128 -progress 1m

fuzz: ## each native fuzz target for FUZZTIME
	@sh tools/fuzz.sh $(FUZZTIME)

fuzz-keep: ## each for FUZZTIME, and what reaches new code goes into testdata/fuzz
	@sh tools/fuzz.sh -keep $(FUZZTIME)

dist: ## a release, in dist/; see docs/install.md
	cd tools/dist && $(GO) run . -src ../.. -out ../../dist -targets '$(TARGETS)' -repository '$(REPOSITORY)' -builder '$(BUILDER)'

dist-check: ## a release for three systems: built, packed, looked at, and run here
	GOOS=windows CGO_ENABLED=0 $(GO) vet -trimpath ./...
	cd tools/dist && $(GO) vet . && $(GO) vet -tags verify . && $(GO) test -timeout 20m .

dist-verify: ## the whole of it: built twice for all systems, installed, upgraded, in a container's root, under Wine
	@sh tools/dist-verify.sh

e2e: ## the vendors' own SDKs against the real binary
	@sh tools/e2e.sh

site: ## the pages as a site, with a search, into dist/site; its links are checked
	@sh tools/site.sh

web: ## the dashboard in a real browser
	@sh tools/web.sh

bench-smoke: ## the measurements' own tests: do they run, is every figure there
	@sh tools/bench.sh -smoke

bench: ## understudy beside other proxies, five minutes (docs/performance.md)
	@sh tools/bench.sh

bench-faults: ## the same while requests fail over, and while the first candidate is frozen
	@sh tools/bench.sh -scenario faults

bench-scaling: ## curves over models, streams, bodies and rules, drawn into docs/images
	@mkdir -p dist && sh tools/bench.sh -scenario scaling -json ../dist/scaling.json
	cd bench && $(GO) run ./curves ../dist/scaling.json ../docs/images

bench-crowd: ## ten thousand streams at once
	@sh tools/bench.sh -scenario crowd

bench-soak: ## an hour of mixed traffic, its memory drawn into docs/images
	@mkdir -p dist && sh tools/bench.sh -scenario soak -json ../dist/soak.json
	cd bench && $(GO) run ./curves ../dist/soak.json ../docs/images

bench-overload: ## five times what it can do, and what comes after
	@sh tools/bench.sh -scenario overload

bench-profile: ## where CPU and memory go on four paths; profiles into dist/
	@mkdir -p dist && sh tools/bench.sh -scenario profile -out ../dist

bench-micro: ## Go benchmarks of the parts; BEFORE=commit compares with that one
	@sh tools/micro.sh $(BEFORE)

pictures: ## the README's pictures of the dashboard, taken anew
	@PICTURES=../../../docs/images sh tools/web.sh -run Pictures -count=1

agents: ## real coding agents from npm (1.1 GB) against the real binary
	@sh tools/agents.sh

clean:
	rm -rf bin dist
