# Everything a contributor runs; `make help` lists it. The work is in scripts/.

.DEFAULT_GOAL := help
SHELL := bash
CACHE := $(or $(LONGSHORE_CACHE),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/longshore)

.PHONY: help
help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-20s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: brokers brokers-stop
brokers: ## get and start RabbitMQ, Kafka, ElasticMQ, PostgreSQL, MariaDB; exports in .cache/brokers/env
	@scripts/brokers start
brokers-stop: ## stop what `make brokers` started
	@scripts/brokers stop

.PHONY: test test-matrix soak soak-kafka soak-mutex move-bridge cover
test: ## start real brokers, test everything with -race, stop them
	@scripts/test
test-matrix: ## the RabbitMQ suites on 4.0, 4.3 and a cluster (root, 10 minutes the first time)
	@scripts/test-matrix
soak: ## the container's soak, 500 seeds with -race (LONGSHORE_SOAK=n for others)
	LONGSHORE_SOAK=$${LONGSHORE_SOAK:-500} go test -race -count=1 -timeout 60m -run Soak ./container
soak-kafka: ## members of Kafka groups come and go for minutes, crash and freeze (LONGSHORE_CHURN=2m)
	LONGSHORE_BROKERS=required LONGSHORE_CHURN=$${LONGSHORE_CHURN:-2m} scripts/brokers run kafka -- go test -race -count=1 -timeout 60m -v -run 'TestChurnOnKafka|TestOnAKafka' ./transport/kafka
soak-mutex: ## kill -9 of producers and consumers, 50 times over 20 000 messages, RabbitMQ, Kafka, sqstest with PostgreSQL
	LONGSHORE_BROKERS=required LONGSHORE_MUTEX_SOAK=$${LONGSHORE_MUTEX_SOAK:-20000} scripts/brokers run rabbitmq kafka postgres -- go test -count=1 -timeout 60m -v -run SoakOnReal ./middleware/mutex/soak
move-bridge: ## a service at 500/s is moved from RabbitMQ to Kafka, turned back halfway and moved again (LONGSHORE_MOVE=30s between two steps)
	LONGSHORE_BROKERS=required LONGSHORE_MOVE=$${LONGSHORE_MOVE:-30s} scripts/brokers run rabbitmq kafka -- go test -race -count=1 -timeout 60m -v -run TestMoveOnRealBrokers ./examples/bridge
soak-bridge: ## kill -9 of bridges, 50 times over 20 000 messages for each of 28 pairs, then with cuts, a target that is away and a restarted source for 4 (LONGSHORE_BRIDGE_N, _KILLS, _SEED, _CUTS, _AWAY seconds; RUN=real/kafka_to_sqs)
	LONGSHORE_BROKERS=required LONGSHORE_BRIDGE_N=$${LONGSHORE_BRIDGE_N:-20000} LONGSHORE_BRIDGE_KILLS=$${LONGSHORE_BRIDGE_KILLS:-50} scripts/brokers run rabbitmq kafka elasticmq -- go test -count=1 -timeout 180m -v -run 'TestKilledBridges(LoseNothing|KeepTheOrderOfFIFOQueues)/$(RUN)' ./bridge
	LONGSHORE_BROKERS=required LONGSHORE_BRIDGE_N=$${LONGSHORE_BRIDGE_N:-20000} LONGSHORE_BRIDGE_KILLS=$${LONGSHORE_BRIDGE_KILLS:-50} LONGSHORE_BRIDGE_CUTS=$${LONGSHORE_BRIDGE_CUTS:-10} LONGSHORE_BRIDGE_AWAY=$${LONGSHORE_BRIDGE_AWAY:-60} scripts/brokers run rabbitmq kafka elasticmq -- go test -count=1 -timeout 180m -v -run TestFaultsOfBothSidesLoseNothing ./bridge
cover: ## test coverage by package, embedded servers only; coverage.txt
	go test -coverprofile=coverage.txt ./...
	go tool cover -func=coverage.txt | tail -n 1

.PHONY: test-browser screenshots
test-browser: ## the live console in a headless Chromium, with real brokers behind it (installs Debian's as root)
	@LONGSHORE_BROKERS=$${LONGSHORE_BROKERS:-required} scripts/brokers run rabbitmq kafka elasticmq -- scripts/browser test $(BROWSERFLAGS)
screenshots: ## take the pictures of the docs again, from the demo's page
	@scripts/browser screenshots

.PHONY: test-mysql
test-mysql: ## the tests of the mutex on MySQL, from a newer Debian in a folder (root)
	@scripts/mysql $(MYSQLFLAGS)

.PHONY: coming-from
coming-from: ## the tests that the pages for people from other systems name, with real brokers
	@scripts/brokers run -- scripts/coming-from $(FLAGS)

.PHONY: faults jepsen soak-faults sabotage endurance endurance-cluster
faults: ## every requirement of the fault suite on real brokers; writes docs/faults.md (RUN=F-C01: one of them)
	@scripts/brokers run -- go run ./tools/faultsreport $(if $(RUN),-run "$(RUN)") $(FAULTSFLAGS)
soak-faults: ## random faults over all three brokers for minutes; prints its seed (LONGSHORE_SOAK_FOR=10m, LONGSHORE_SOAK_SEED=n)
	LONGSHORE_BROKERS=required LONGSHORE_SOAK_FOR=$${LONGSHORE_SOAK_FOR:-10m} scripts/brokers run -- go test -race -count=1 -timeout 120m -v -run 'TestSoak' ./faults
jepsen: ## three brokers and three consumers under fire for ten minutes, judged by tools/historycheck (ON=kafka; root; LONGSHORE_JEPSEN_FOR=2m, LONGSHORE_JEPSEN_SEED=n, FLAGS='-only "a broker is killed"')
	go build -o .cache/cluster ./faults/cluster && LONGSHORE_BROKERS=required scripts/brokers run $(or $(ON),rabbitmq)-three postgres-pair -- .cache/cluster -on $(or $(ON),rabbitmq) -for $${LONGSHORE_JEPSEN_FOR:-10m} -seed $${LONGSHORE_JEPSEN_SEED:-0} $(FLAGS)
endurance-cluster: ## three brokers and three consumers for an hour, one restarted and one rescaled each minute: nothing may grow (ON=kafka; root; LONGSHORE_ENDURE_FOR=10m)
	go build -o .cache/cluster ./faults/cluster && LONGSHORE_BROKERS=required scripts/brokers run $(or $(ON),rabbitmq)-three postgres-pair -- .cache/cluster -endure -on $(or $(ON),rabbitmq) -for $${LONGSHORE_ENDURE_FOR:-1h} -picture docs/explanation/clusters/endurance-$(or $(ON),rabbitmq).svg $(FLAGS)
endurance: ## the README's program against a million messages of 10 KB with 0.1 % poison on each broker (N=20000, ON=kafka)
	LONGSHORE_BROKERS=required ELASTICMQ_HEAP=$${ELASTICMQ_HEAP:-4g} LONGSHORE_ENDURANCE=$(or $(N),1000000) scripts/brokers run rabbitmq kafka elasticmq -- go test -count=1 -timeout 0 -v -run 'TestEndurance/$(ON)' ./faults
sabotage: ## break the code in ten ways in a copy of the tree: each must turn the fault suite red
	@scripts/brokers run -- go run ./tools/sabotage $(SABOTAGEFLAGS)

.PHONY: bench bench-bridge bench-jvm scale
bench: ## measure against hand-written loops, Watermill and gocloud; prints the tables and writes docs/benchmarks.md
	@scripts/brokers run rabbitmq kafka elasticmq -- bash -c 'cd bench && go run . -page ../docs/benchmarks.md $(BENCHFLAGS)'
scale: ## what partitions, queues, lanes and deliveries in flight cost; writes the tables of docs/explanation/scale.md (10 minutes)
	@scripts/brokers run rabbitmq kafka -- bash -c 'cd bench && go run . -case scale -into ../docs/explanation/scale.md $(BENCHFLAGS)'
bench-bridge: ## measure routes of the bridge against hand-written loops and RabbitMQ's shovel, their memory with a backlog of 1 000 000, and verify of 1 000 000 entries (BENCHFLAGS='-rounds 2')
	go test -run '^$$' -bench BenchmarkVerify -benchtime 1x -timeout 30m ./bridge
	@scripts/brokers run rabbitmq kafka elasticmq -- bash -c 'cd bench && go run . -case bridge $(BENCHFLAGS)'
bench-jvm: ## measure against Spring and Confluent's Parallel Consumer, built by Maven (BENCHFLAGS='-case jvm/kafka -rounds 2')
	@scripts/bench-jvm $(BENCHFLAGS)

.PHONY: spring
spring: ## read what Spring writes, and let Spring read what is written here, on real brokers (Java, Maven)
	@scripts/spring $(SPRINGFLAGS)

.PHONY: promql
promql: ## the dashboard's and the pages' expressions, read by Prometheus's parser, against a real page
	@page=$$(mktemp) && trap 'rm -f "$$page"' EXIT && LONGSHORE_WRITE_PAGE=$$page go test -count=1 -run PageDashboard ./telemetry/prom && \
		cd scripts/promql && go run . $$page ../../telemetry/prom/dashboard.json ../../docs/how-to/scale-out.md ../../docs/how-to/deploy.md

.PHONY: observe
observe: ## Prometheus, KEDA's scaler and a collector look at running containers: dashboard, pages and names show what happens
	@scripts/observe

.PHONY: model simulate planted fuzz test-transactions
simulate: ## both layers through random histories on all processors: the Scheduler, then a whole container beside broker faults; prints what was hit, and seed and shortest history of a failure (LONGSHORE_SIMULATE=10m, LONGSHORE_SIMULATE_SEED=n)
	LONGSHORE_SIMULATE=$${LONGSHORE_SIMULATE:-1m} go test -count=1 -timeout 0 -v -run '^TestSimulation$$' ./container/internal/dispatch
	LONGSHORE_SIMULATE=$${LONGSHORE_SIMULATE:-2m} go test -count=1 -timeout 0 -v -run '^TestSimulation$$' ./container
planted: ## put fixed faults of nine commits and faults 2, 5, 6 and 38 back, one at a time: the simulation must find each within a minute (PLANTEDFLAGS='-only "fault 38"')
	go run ./tools/planted $(PLANTEDFLAGS)
model: ## random sequences of operations against simple models, thousands (LONGSHORE_MODEL=n for others)
	LONGSHORE_MODEL=$${LONGSHORE_MODEL:-3000} go test -count=1 -timeout 60m -run '^TestModel' ./container ./middleware/breaker ./transport/kafka
test-transactions: ## 60,000 records through transactions on a real Kafka that restarts, a process killed every 5 s, foreign transactions aborted and left open: one result of each record
	@LONGSHORE_BROKERS=$${LONGSHORE_BROKERS:-required} LONGSHORE_TX_PROOF=1 scripts/brokers run kafka -- go test -count=1 -timeout 15m -v -run '^TestTransactionsOfKilledProcesses$$' ./transport/kafka
fuzz: ## each fuzz target for a minute (LONGSHORE_FUZZTIME=10s for another time)
	@scripts/fuzz

.PHONY: autoscale
autoscale: ## simulate the autoscale policies; writes the table and pictures of docs/explanation/autoscaling.md
	LONGSHORE_WRITE_DOCS=1 go test -count=1 -v -run 'Table|Pictures|Bars|Spring|HeldOut|Several' ./container/autoscale/internal/scalesim
	LONGSHORE_WRITE_DOCS=1 go test -count=1 -run Picture ./middleware/throttle # those of docs/how-to/throttle-a-fleet.md

.PHONY: amqptest-conformance
amqptest-conformance: ## the embedded AMQP server against a real RabbitMQ
	@scripts/amqptest-conformance.sh

.PHONY: release-dry
release-dry: ## the files of a release with checksums and SBOM in .cache/release, checked; nothing is published (TAG=v1.2.3, LONGSHORE_PLATFORMS=linux/amd64)
	@rm -rf .cache/release && scripts/release $(or $(TAG),v0.0.0-dry) .cache/release

.PHONY: fmt lint vuln docs deps apidiff
fmt: ## format the code
	gofmt -w $$(git ls-files -co --exclude-standard '*.go')
lint: ## golangci-lint, built once into the cache
	@scripts/lint
vuln: ## known vulnerabilities, where their database can be reached
	@scripts/vuln
docs: ## compile the Go code in the documentation, and count its words
	go run ./scripts/docscheck
deps: ## what each package may depend on
	@scripts/depscheck
apidiff: ## what changed in the exported API since the newest tag (BASE=commit for another)
	@scripts/apidiff $(BASE)
