# What measures and teaches; included by the Makefile. `docs/measurements.md` has the table.

.PHONY: bench bench-cpu bench-first eval eval-answers eval-check eval-baseline eval-calculator train-data train-adapters fit-confidence calibrate train-reader eval-embedded eval-system eval-reading eval-reader eval-corpus bench-index eval-papers injection eval-classifier bench-classifier bench-names bench-kg eval-kg saturation load gateways rolling-restart eval-documents model-check load-batch

# What is taught and measured with the small model, whichever this machine serves; what they need is made for it.
bench-cpu bench-first fit-confidence train-adapters: export CRAGMESH_MODEL = small

.venv-bench/pyvenv.cfg: pyproject.toml tests/bench/requirements.txt
	@echo "==> installing the peers of the retrieval bench into .venv-bench"
	@$(PYTHON) -m venv .venv-bench
	@.venv-bench/bin/python -m pip install --quiet --upgrade pip
	@.venv-bench/bin/python -m pip install "$(TORCH)"
	@.venv-bench/bin/python -m pip install --editable ".[retriever,torch]" -r tests/bench/requirements.txt
	@touch $@

bench: .venv-bench/pyvenv.cfg ## Measure retrieval beside Haystack and LangChain; needs CRAGMESH_EVAL_DATA.
	.venv-bench/bin/python -m tests.bench.retrieval $(ARGS)

bench-cpu: .venv-bench/pyvenv.cfg up ## Measure the generator beside llama.cpp, a question beside Haystack on it; compiles llama.cpp once.
	$(BIN)/python -m tests.bench.cpu $(ARGS)

bench-first: setup generator ## Start the mesh anew and compare the first questions' times.
	$(BIN)/cragmesh down
	$(BIN)/cragmesh up
	$(BIN)/python -m tests.bench.first $(ARGS)

EVAL_OUT ?= out/eval
# Teaches adapters like the shipped ones; how those were made is in their run cards.
TRAIN_ANSWER = --epochs 1 --learning-rate 4e-4 --time-limit 40
TRAIN_KG_API = --epochs 1 --learning-rate 6e-4 --time-limit 25
STRATEGY ?= adaptive
STRATEGIES ?= naive-rag db3 weknow electric-sheep adaptive
DATA = $${CRAGMESH_EVAL_DATA:?names no folder}

eval: up ## Ask the running mesh CRAG's records and report; needs CRAGMESH_EVAL_DATA.
	$(BIN)/cragmesh eval run "$(DATA)/crag_pages.jsonl.gz" --strategy $(STRATEGY) --out $(EVAL_OUT)/whole-$(STRATEGY) $(ARGS)

# Every answer is given: `calibrate` reports, half by half, what abstention earns.
eval-answers: setup generator ## CRAG's questions with the contexts given, by each of STRATEGIES, compared; what abstention earns `adaptive`.
	@test -n "$(DATA)"
	$(BIN)/cragmesh up
	for strategy in $(STRATEGIES); do \
	  $(BIN)/cragmesh eval run "$(DATA)/crag_kg_qa.jsonl" --every-answer --strategy $$strategy --out $(EVAL_OUT)/answers-$$strategy $(ARGS) || exit 1; done
	$(if $(word 2,$(STRATEGIES)),$(BIN)/cragmesh eval compare $(STRATEGIES:%=$(EVAL_OUT)/answers-%) --out $(EVAL_OUT)/answers-compare)
	$(if $(filter adaptive,$(STRATEGIES)),$(BIN)/cragmesh calibrate $(EVAL_OUT)/answers-adaptive --out $(EVAL_OUT)/answers-confidence.json --report $(EVAL_OUT)/answers-calibration $(patsubst %,--beside $(EVAL_OUT)/answers-%,$(filter-out adaptive,$(STRATEGIES))))

eval-check: setup ## Try the rule judge on the gold answers alone; needs CRAGMESH_EVAL_DATA.
	$(BIN)/cragmesh eval check "$(DATA)/crag_kg_qa.jsonl" --timed

# MODEL names the folder that the reports are kept in: embedded, lab-1.5b ...
eval-baseline: up ## Measure naive-rag and db3 and keep their reports; MODEL=name.
	for strategy in naive-rag db3; do for set in crag_kg_qa.jsonl crag_pages.jsonl.gz; do \
	  name=$$strategy-$${set%%.*}; \
	  $(BIN)/cragmesh eval run "$(DATA)/$$set" --strategy $$strategy --out $(EVAL_OUT)/$(MODEL)/$$name $(ARGS); \
	  mkdir -p services/gateway/data/reports/$(MODEL)/$$name; \
	  cp $(EVAL_OUT)/$(MODEL)/$$name/report/{report.md,summary.json,*.png} services/gateway/data/reports/$(MODEL)/$$name/; \
	done; done
	$(BIN)/cragmesh eval compare $(EVAL_OUT)/$(MODEL)/{naive-rag,db3}-crag_kg_qa --out $(EVAL_OUT)/$(MODEL)/compare

eval-calculator: setup ## Measure the calculator on TAT-QA; needs CRAGMESH_EVAL_DATA, ARGS="--generator URL".
	$(BIN)/python -m tests.bench.calculator $(ARGS)

train-data: setup ## Make up training data in out/train: answers and programs; PROSE=file of `cragmesh train prose`.
	$(BIN)/cragmesh train synthesise --task answer $(if $(PROSE),--prose "$(PROSE)")
	$(BIN)/cragmesh train synthesise --task kg-api

# On two idle cores at most 40 and 25 minutes; ARGS="--resume" goes on after a kill.
train-adapters: setup generator ## Train the embedded adapters on out/train.
	$(BIN)/cragmesh train sft out/train/answer.jsonl --task answer --out out/train/answer --adapter services/generator/adapters/answer $(TRAIN_ANSWER) $(ARGS)
	$(BIN)/cragmesh train sft out/train/kg-api.jsonl --task kg-api --out out/train/kg-api --adapter services/generator/adapters/kg-api $(TRAIN_KG_API) $(ARGS)

# What it is fitted on are made-up questions: real ones are for measuring.
fit-confidence: up ## Fit when the embedded model abstains, and ship it; real runs to report on in ARGS="--apply-to RUN".
	$(BIN)/cragmesh train questions
	$(BIN)/cragmesh eval run out/train/questions.jsonl --every-answer --strategy adaptive --out $(EVAL_OUT)/embedded/made-up
	$(BIN)/cragmesh calibrate $(EVAL_OUT)/embedded/made-up --out services/gateway/data/confidence/SmolLM2-135M-Instruct+answer.json --generator SmolLM2-135M-Instruct+answer --report $(EVAL_OUT)/embedded/made-up-fit $(ARGS)

calibrate: up ## Fit when the running mesh abstains, whatever its generator: ten minutes of made-up questions.
	$(BIN)/cragmesh calibrate --made-up $(ARGS)

# Weights of the extractive reader; on two cores --minutes 60 reads some 40,000 pairs.
train-reader: setup ## Train the extractive reader; ARGS="FILE --minutes 60 --resume".
	$(BIN)/cragmesh train reader --out out/train/reader --weights services/reranker/reader $(ARGS)

# naive-rag asks the base model; the second run gives every answer and is what `calibrate` reports on, half by half; the
# third is the mesh as it comes.
eval-embedded: up ## The embedded model on real questions, contexts given: base, adapter, adapter and confidence.
	for strategy in naive-rag adaptive; do \
	  $(BIN)/cragmesh eval run "$(DATA)/crag_kg_qa.jsonl" --every-answer --timed --strategy $$strategy --out $(EVAL_OUT)/embedded/$$strategy-all $(ARGS); done
	$(BIN)/cragmesh calibrate $(EVAL_OUT)/embedded/adaptive-all --out $(EVAL_OUT)/embedded/confidence.json --report $(EVAL_OUT)/embedded/calibration
	$(BIN)/cragmesh eval run "$(DATA)/crag_kg_qa.jsonl" --timed --strategy adaptive --out $(EVAL_OUT)/embedded/adaptive $(ARGS)

# A graph of the evaluation's rows, whichever a running mesh has.
eval-system: .venv-bench/pyvenv.cfg out/eval-kg.sqlite generator ## The whole system beside Haystack and LangChain: a question in, its answer out; ARGS="--limit 60 --judge llm".
	$(BIN)/cragmesh down
	CRAGMESH_KG_DATABASE=sqlite:///$(CURDIR)/out/eval-kg.sqlite $(BIN)/cragmesh up
	$(BIN)/python -W ignore -m tests.bench.system --out $(EVAL_OUT)/system $(ARGS)
	$(BIN)/cragmesh down

eval-reading: up ## SQuAD's questions over its articles as a collection and FreshQA's over their pages, by the running mesh.
	$(BIN)/python -W ignore -m tests.bench.system --out $(EVAL_OUT)/reading --sets squad,freshqa --systems adaptive $(ARGS)

eval-reader: setup ## The extractive reader on SQuAD's questions, each with its own paragraph; needs CRAGMESH_EVAL_DATA.
	$(BIN)/python -W ignore -m tests.bench.reader $(ARGS)

eval-corpus: setup generator ## Answers found in a collection: dense, BM25, hybrid, reranked; needs CRAGMESH_EVAL_DATA.
	$(BIN)/python -W ignore -m tests.bench.corpus $(ARGS)

eval-documents: setup ## Answers and their pages found in 200 PDFs of Debian's documentation; ARGS="FOLDER" that holds them.
	$(BIN)/python -W ignore -m tests.bench.documents $(ARGS)

bench-index: setup ## What collections cost in local mode: indexing, search at 10 k and 100 k chunks.
	$(BIN)/python -W ignore -m tests.bench.index $(ARGS)

eval-papers: setup ## Measure /papers on Cranfield step by step; needs CRAGMESH_EVAL_DATA, and a generator for what is new.
	$(BIN)/cragmesh papers eval "$(DATA)/ir/cranfield" --out out/eval-papers $(ARGS)

injection: setup ## Ask under forty prompt injections; ARGS="--generator URL" or "--gateway URL".
	$(BIN)/python -m tests.bench.injection $(ARGS)

eval-classifier: setup ## Measure the classifier on real questions; needs CRAGMESH_EVAL_DATA.
	$(BIN)/cragmesh classifier evaluate $(ARGS)

bench-classifier: setup ## Measure the classifier's speed on one core.
	$(BIN)/python -m tests.bench.classifier $(ARGS)

bench-names: setup ## Measure entity resolution over a million names; real names need CRAGMESH_EVAL_DATA.
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.bench.names $(ARGS)

bench-kg: setup ## Measure parsing, compiling and executing over a graph of a million rows.
	$(BIN)/python -m tests.bench.kg $(ARGS)

out/eval-kg.sqlite: setup
	@test -n "$${CRAGMESH_EVAL_DATA:-}" || { echo "error: CRAGMESH_EVAL_DATA names no folder" >&2; exit 1; }
	@mkdir -p out
	$(BIN)/python -m lab.crag_data load "$$CRAGMESH_EVAL_DATA/kg_rows" --database sqlite:///out/eval-kg.sqlite
	$(BIN)/cragmesh kg load "$$CRAGMESH_EVAL_DATA/public_tables" --database sqlite:///out/eval-kg.sqlite

eval-kg: out/eval-kg.sqlite ## Share of real questions whose facts hold the answer; needs CRAGMESH_EVAL_DATA, ARGS="--generator URL".
	$(BIN)/python -m tests.bench.kg_eval --database sqlite:///out/eval-kg.sqlite $(ARGS)

saturation: setup ## Questions a second until no more are answered, beside Haystack (needs .venv-bench).
	$(BIN)/python -m tests.load.saturation $(ARGS)

SCENARIO ?= steady

load: setup ## Load a mesh by locust, with a fake generator or TARGET=URL: SCENARIO="steady spike soak mixed big-pages hang-ups doors", ARGS="--rate 2 --questions FILE".
	$(BIN)/python -m tests.load.run $(SCENARIO) $(if $(TARGET),--target $(TARGET)) $(ARGS)

gateways: setup ## Three gateways, one Valkey or Redis, one slow generator, asked 20 times what it answers.
	$(BIN)/python -m tests.load.gateways $(ARGS)

model-check: setup ## Ask real processes and the model of `cragmesh plan` the same questions at the same times.
	$(BIN)/python -m tests.load.model $(ARGS)

load-batch: setup ## Ask beside a batch of 2,000 questions, and without it.
	$(BIN)/python -m tests.load.batch $(ARGS)

rolling-restart: setup ## Replace every service under load, one after the other, and count what was lost.
	$(BIN)/python -m tests.load.restart $(ARGS)
