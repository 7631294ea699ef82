# SPDX-License-Identifier: MIT
# All that a user or developer of this tree needs to type. Each target does its own
# set-up, and a second call does not repeat it. `make` alone lists the targets.

PYTHON ?= python3
PY     := .venv/bin/python
NATIVE := $(patsubst armv8l,armv7l,$(shell uname -m))
FOREIGN := $(filter-out $(NATIVE),x86_64 aarch64 armv7l riscv64)
PYTEST := $(PY) -m pytest -q
# Few that fail are run once more, alone, and named.
PYTEST_ALONE := PYTHONPATH=tests $(PY) -m rings.alone

# Hundreds of tests start a Python, which without its bytecode compiles all it imports.
unexport PYTHONDONTWRITEBYTECODE

FAST_TESTS := tests/unit tests/cli tests/golden tests/plugin tests/test_layers.py
SCRIPTS    := setup/packages setup/environment setup/run setup/test-board setup/fresh setup/try-install setup/try-ci .ci/run
C_FILES    := $(wildcard agent/*.[ch] agent/*/*.[ch] agent/tests/*/*.[ch] plugin/*.[ch] plugin/tests/*.c lib/*.[ch] lib/tests/*.[ch] bench/guest/*.c lab/*/*.c)

help:                 ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1 \t/p' Makefile | expand -t 12
	@echo "Options of a measurement: make run ARGS='--duration 10m --load idle,os'"

run: agent-native     ## measure this machine, then two kernels on a virtual board: four to seven minutes
	@setup/run $(ARGS)

run-local: agent-native ## measure this machine alone, for about two minutes
	@.venv/bin/rtscope run $(ARGS)

# -j4 on any machine: the agent's tests wait more than they compute.
AT_ONCE := --no-print-directory -j4 --output-sync=line
STYLE   := style-python style-c style-scripts
CHECKS  := fast-tests types agent-tests agent-tests-address agent-tests-thread \
	lib-tests lib-tests-address lib-tests-thread

check: .venv/.stamp-dev ## all that a commit has to pass, without measuring: under a minute
	@$(MAKE) $(AT_ONCE) $(STYLE) $(CHECKS)

# The board first: tests of the plugin are skipped without its QEMU. Those of this machine
# mostly wait: the fast tests, of which none can be late, run beside them and give way.
test: packages-test style ## every test but test-long: all architectures, real agent, loads, sshd
	@$(MAKE) --no-print-directory agent plugin WERROR=1
	@setup/test-board
	@$(MAKE) $(AT_ONCE) $(filter-out fast-tests,$(CHECKS))
	@$(MAKE) $(AT_ONCE) agent-twice TWINS=$(NATIVE) $(FOREIGN:%=agent-tests-on-%) $(FOREIGN:%=lib-tests-on-%)
	@$(MAKE) --no-print-directory -j2 --output-sync=line system-tests fast-tests-beside

test-long: packages-test packages-kernels .venv/.stamp-dev agent plugin ## what takes minutes: virtual boards, pages as they are typed; of make nightly
	@.venv/bin/rtscope kernel build jh7110-6.12-rt >/dev/null
	$(PYTEST) -n 2 -m "system and long" tests/system

nightly:              ## all that takes hours, resumed where it ended; ARGS=--list, or "--only fuzz,mutants"
	@PYTHONPATH=tests $(PY) -m rings.nightly $(ARGS)

flakes: packages-test .venv/.stamp-dev agent plugin ## run the system tests ten times in random order, half of them beside a load: hours
	@PYTHONPATH=tests $(PY) -m rings.flakes $(ARGS)

flakes-c: packages-test lib-tests lib-tests-address lib-tests-thread agent-tests agent-tests-address agent-tests-thread ## run each C test 500 times beside a load, on one CPU and with nice 19: hours
	@PYTHONPATH=tests $(PY) -m rings.ctests $(ARGS)

test-times: packages-test .venv/.stamp-dev agent plugin ## run the tests, and print the 40 dearest with CPU time, boots, builds and sleeps
	@PYTHONPATH=tests $(PY) -m rings.times -n 2 -m "not long" $(or $(ARGS),$(FAST_TESTS) tests/system)

fresh-machines:       ## run both commands of README on fresh bookworm, trixie, sid and noble: hours
	@PYTHONPATH=tests $(PY) -m rings.machines $(ARGS)

docs-run: packages-test packages-bench agent plugin ## type what tutorials and how-to guides say: an hour, or ARGS=explain for some
	@PYTHONPATH=tests $(PY) -m pages.run $(ARGS)

clocks: agent plugin ## hand ten million clock readings from CPU to CPU on each virtual board: minutes
	RTSCOPE_TEST_HANDED=10000000 $(PYTEST) -n0 tests/system/test_clocks.py

culprits: packages-kernels agent plugin ## plant what makes wake-ups late on virtual boards, and judge each title: five minutes
	PYTHONPATH=src:tests $(PY) -m culprits.matrix --table lab/culprits.md

strangers: agent plugin ## plant the designs of somebody who has not read how rtscope explains: ten minutes, or ARGS=bpf
	PYTHONPATH=src:tests $(PY) -m culprits.strangers.run --table lab/designs-of-a-stranger.md $(ARGS)

path-culprits: packages-kernels agent plugin ## plant what delays packets and interrupts on their way: ten minutes, or ARGS=tap
	PYTHONPATH=src:tests $(PY) -m culprits.strangers.run --set path --jobs 2 --table lab/path-culprits.md $(ARGS)

sources: agent plugin ## type the command of each thing that the source documents name: minutes
	@PYTHONPATH=tests:tools/docs $(PY) -m sources.run $(ARGS)

programs: packages-test agent ## check programs that others wrote beside bpftrace: a quarter of an hour, or ARGS=jackd
	PATH=$(CURDIR)/.venv/bin:$$PATH PYTHONPATH=src:tests $(PY) -m programs.run $(ARGS)

tested: packages-kernels agent plugin ## test programs of others on virtual boards, unchanged and made worse: hours, or ARGS=clocks
	PYTHONPATH=src:tests $(PY) -m programs.tested.run $(ARGS)

fmt: .venv/.stamp-dev ## rewrite the code in the house style
	$(PY) -m ruff check --fix-only .
	$(PY) -m ruff format .
	.venv/bin/clang-format -i $(C_FILES)

# The tables of this page take an hour.
PAGES   := bench/calibration.py
BENCHES ?= $(filter-out $(PAGES),$(sort $(wildcard bench/*.py)))

bench: packages-bench .venv/.stamp-dev agent plugin ## compare the agent with cyclictest, and count its cost: minutes
	@for bench in $(BENCHES); do echo "--- $$bench"; $(PY) $$bench || exit 1; done

SUITE ?= trixie
# make's own AS is the assembler
ifneq ($(filter default undefined,$(origin AS)),)
AS    := root
endif

fresh:                ## run both commands of README on a fresh SUITE=trixie, or ARGS="make check" AS=user
	@setup/fresh '$(SUITE)' '$(AS)' "$$ARGS"

mutants: .venv/.stamp-dev plugin-native ## take 1,200 mutants of src, of which the fast tests must kill 70 %: hours
	@PYTHONPATH=tests $(PY) -m mutants.run --tests $(FAST_TESTS) $(ARGS)

fuzz: .venv/.stamp-dev ## read a million mutated inputs, or ARGS="--cases N"
	@PYTHONPATH=tests $(PY) -m fuzz.run --cases 1000000 $(ARGS)

golden: .venv/.stamp-dev ## rewrite the golden files; read their diff before you commit
	$(PYTEST) tests/golden tests/unit/test_events_*.py tests/unit/test_instructions_*.py --rewrite-golden

net: .venv/.stamp-dev  ## compare every verb's output with what is held; ARGS=--rewrite holds today's
	@PYTHONPATH=tests $(PY) -m net.run $(ARGS)

docs: .venv/.stamp-dev ## generate docs/reference from the program
	$(PY) tools/docs/generate.py

agent: .venv/.stamp-run ## build the agent for all four architectures
	@$(MAKE) --no-print-directory -C agent all

plugin: .venv/.stamp-run ## build the plugin that virtual boards run under
	@$(MAKE) --no-print-directory -C plugin

wheel: .venv/.stamp-run ## make dist/rtscope-*.whl, for pipx, pip or uv
	@SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct 2>/dev/null || echo 315532800) \
		$(PY) -m pip --quiet wheel --no-deps --no-build-isolation --no-index \
		--wheel-dir dist .
	@ls dist/*.whl

deb: wheel            ## make dist/rtscope_*.deb, for Debian 13 and later
	@SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct 2>/dev/null || echo 315532800) \
		$(PY) setup/deb.py dist/rtscope-*_x86_64.whl

clean:                ## remove what was built; .venv and measured records stay
	@$(MAKE) -s -C agent clean
	@$(MAKE) -s -C plugin clean
	@$(MAKE) -s -C lib clean
	rm -rf build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis

style: $(STYLE)

style-python: .venv/.stamp-dev
	$(PY) -m ruff format --check .
	$(PY) -m ruff check .

style-c: .venv/.stamp-dev
	.venv/bin/clang-format --dry-run -Werror $(C_FILES)

style-scripts:
	shellcheck $(SCRIPTS)

types: .venv/.stamp-dev
	$(PY) -m mypy

agent-native: .venv/.stamp-run
	@$(MAKE) --no-print-directory -C agent
	@$(MAKE) --no-print-directory -C plugin

# The longest first. Make's own settings are not for those that the tests start, and
# tests of one module mostly run in one process, which makes what they share once.
fast-tests: .venv/.stamp-dev plugin-native
	MAKEFLAGS= $(PYTEST_ALONE) -n $(shell nproc) --maxprocesses 8 --dist worksteal \
		-m "not system$(if $(SLOW),, and not slow)" $(FAST_TESTS)

fast-tests-beside:
	@nice -n 19 $(MAKE) --no-print-directory fast-tests SLOW=1

system-tests:
	MAKEFLAGS= $(PYTEST_ALONE) -n 3 -m "system and not long" tests/system

plugin-native: .venv/.stamp-dev
	@$(MAKE) -s -C plugin WERROR=1

agent-tests:
	@$(MAKE) -s -C agent check WERROR=1

agent-tests-address:
	@$(MAKE) -s -C agent check WERROR=1 SAN=address,undefined

agent-tests-thread:
	@$(MAKE) -s -C agent check WERROR=1 SAN=thread

agent-tests-on-%:
	@$(MAKE) -s -C agent check ARCH=$*

lib-tests: .venv/.stamp-dev
	@$(MAKE) -s -C lib check cxx consumers WERROR=1

lib-tests-address:
	@$(MAKE) -s -C lib check WERROR=1 SAN=address,undefined

lib-tests-thread:
	@$(MAKE) -s -C lib check WERROR=1 SAN=thread

lib-tests-on-%:
	@$(MAKE) -s -C lib check ARCH=$*

agent-twice: .venv/.stamp-run
	@$(MAKE) -s -C agent reproducible WERROR=1

packages-%:
	@setup/packages $*

# --- the environment -------------------------------------------------------------

NEEDED := pyproject.toml constraints.txt constraints-dev.txt setup/environment

# An environment that was made in another folder, before this one was moved or
# copied, is made again.
ifeq ($(shell grep -sF 'venv $(CURDIR)/.venv' .venv/pyvenv.cfg),)
NEEDED += FORCE
endif

.venv/.stamp-run: $(NEEDED) | packages-run
	@PYTHON='$(PYTHON)' setup/environment run

.venv/.stamp-dev: $(NEEDED) | packages-check
	@PYTHON='$(PYTHON)' setup/environment dev

.PHONY: help run run-local check test test-long docs-run nightly flakes flakes-c test-times fresh-machines clocks culprits strangers path-culprits programs tested fmt bench fresh mutants fuzz golden net docs agent plugin wheel deb clean \
	$(STYLE) style types agent-native plugin-native fast-tests fast-tests-beside system-tests agent-tests agent-tests-address \
	agent-tests-thread lib-tests lib-tests-address lib-tests-thread agent-twice FORCE
