"""
Build the kernels of a search one after the other, and boot each for each seed.

Source and build directory stay between two steps, so that kbuild compiles only what a
step has changed; with ccache installed, files that an earlier step has compiled are not
compiled again either. A built kernel becomes a part of the cache: it is booted, and its
wake-ups are explained, as those of any other kernel.
"""

import hashlib
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from rtscope.boards.catalogue import get_board, with_append
from rtscope.boards.kernels import build
from rtscope.boards.kernels.catalogue import CONFIG, IMAGE, SYMBOLS
from rtscope.boards.kernels.kconfig import Symbol, read_kconfig
from rtscope.boards.kernels.recipe import Recipe, fragments_of, get_arch
from rtscope.boards.kernels.resolved import (
    differences,
    differing_names,
    refuse,
    requested_settings,
    values_of,
)
from rtscope.boards.kernels.sourcekernel import RECIPE
from rtscope.boards.parts.buildcontext import BuildContext
from rtscope.boards.parts.cache import Part, build_part, locked
from rtscope.boards.parts.prepare import prepare_with
from rtscope.boards.runs.prepare import PreparedCampaign, capacity_for, request_for
from rtscope.boards.runs.runner import BoardRunner
from rtscope.boards.runs.store import StoredResults
from rtscope.host.errors import KernelError, MeasurementError, UsageError, first_of
from rtscope.host.files import write_atomically
from rtscope.host.files.heldfolders import held_folder
from rtscope.measure.campaign.file import to_dict
from rtscope.measure.campaign.model import Campaign
from rtscope.measure.campaign.options import Options, with_options
from rtscope.measure.execute import OnEvent, execute
from rtscope.measure.plan import Plan, make_plan, remaining
from rtscope.record.directory.place import CAMPAIGN, SEARCH, refuse_gone
from rtscope.record.directory.records import ResultDir, create
from rtscope.stats.runcaveats import why_left_out
from rtscope.verbs.bisect.criterion import Values, value_of
from rtscope.verbs.bisect.outcome import Built, CannotGoOnError

LOG = "build.log"
FOLDER = "bisect"
"""Of the cache: where a search checks out and compiles."""


@contextmanager
def workplace(cache: Path) -> Iterator[Path]:
    """Give an empty directory; remove it at the end, whatever the end is."""
    folder = cache / FOLDER
    with ExitStack() as stack:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            place = stack.enter_context(held_folder(folder, prefix="search-"))
        except OSError as error:
            raise KernelError(
                f"cannot make a directory in {folder}: {error.strerror}; make it "
                "writable, or set XDG_CACHE_HOME to another directory"
            ) from error
        yield place


@dataclass(slots=True)
class Bench:
    """The place where kernels of one recipe are configured and compiled."""

    recipe: Recipe
    root: Path
    """Has `source` and `build`."""
    context: BuildContext
    log_file: Path
    """Of the last build."""
    parts: dict[str, Part] = field(default_factory=dict)
    """Of the kernels that were built, by the digest of their image."""

    @property
    def source(self) -> Path:
        """The source tree."""
        return self.root / "source"

    @property
    def place(self) -> build.Workplace:
        """Where the next kernel is built."""
        there = shutil.which("ccache")
        ccache = self.context.cache / f"ccache-{RECIPE}" if there else None
        return build.Workplace(
            self.source,
            self.root / "build",
            self.log_file,
            self.context.log,
            self.context.progress,
            ccache,
        )

    def part_of(self, digest: str) -> Part:
        """Return the part of the kernel with this image."""
        return self.parts[digest]

    def check(self) -> None:
        """Raise CannotGoOnError if this machine cannot build a kernel now."""
        try:
            build.check_machine(self.recipe, where=self.root)
        except KernelError as error:
            raise CannotGoOnError(str(error)) from error

    def resolve(self, recipe: Recipe) -> Mapping[str, str]:
        """Configure; return what is not n, without CONFIG_. KernelError if refused."""
        self.check()
        (self.root / "build/.config").unlink(missing_ok=True)
        self.log_file.unlink(missing_ok=True)
        text = self.guarded(lambda: build.configure(recipe, self.place))
        values = values_of(text, source=CONFIG)
        settings = requested_settings(fragments_of(recipe))
        if differences(settings, values, {}):  # what follows reads all Kconfig files
            refuse(differences(settings, values, self.symbols()), recipe=recipe.name)
        return values

    def symbols(self) -> Mapping[str, Symbol]:
        """Return the symbols of the source tree."""
        return read_kconfig(self.source, srcarch=get_arch(self.recipe.arch).srcarch)

    def compile(self, label: str) -> Built:
        """Build what is configured, and keep it in the cache."""
        self.guarded(lambda: build.compile_kernel(self.recipe, self.place))
        place, arch = self.place, get_arch(self.recipe.arch)
        image = place.build / arch.image
        with image.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        # kbuild's own number counts up; the release is what `uname -r` prints.
        notes = {"release": build.release_of(place), "compiler": "", "source": label}

        def keep(work: Path) -> Mapping[str, object]:
            shutil.copyfile(image, work / IMAGE)
            shutil.copyfile(place.build / "System.map", work / SYMBOLS)
            shutil.copyfile(place.build / ".config", work / CONFIG)
            return notes

        name = f"kernel-bisect-{digest[:16]}-{self.recipe.arch}"
        with locked(self.context.cache, log=self.context.log):
            self.parts[digest] = build_part(
                self.context.cache, name, inputs={"image": digest}, build=keep
            )
        return Built(digest, label)

    def guarded(self, work: Callable[[], "str | None"]) -> str:
        """Do a step of a build; a full disk is no fault of the source."""
        try:
            return work() or ""
        except KernelError as error:
            kept = self.log_file.with_suffix(".failed.log")
            if self.log_file.exists():
                write_atomically(kept, self.log_file.read_bytes())
            if shutil.disk_usage(self.root).free < build.FULL_BYTES:
                raise CannotGoOnError(str(error)) from error
            said = str(error).replace(str(self.log_file), str(kept))
            raise KernelError(said.replace(f"{self.root}/", "")) from error


@dataclass(slots=True)
class CommitKernels:
    """Kernels of commits, or of the patches of a series as commits."""

    bench: Bench
    take: Callable[[str], None]
    """Makes the source that of a commit."""
    label: Callable[[str], str]

    def configure(self, name: str) -> str:
        """Check out a commit and configure it."""
        self.bench.guarded(lambda: self.take(name))
        self.bench.resolve(self.bench.recipe)
        return name

    def compile(self, name: str) -> Built:
        """Build it."""
        return self.bench.compile(self.label(name).replace(" ", "-"))


@dataclass(slots=True)
class ConfiguredKernels:
    """Kernels of one source with different settings."""

    bench: Bench
    texts: dict[str, str] = field(default_factory=dict)
    """Configurations to try, by their names."""
    wanted: dict[str, Mapping[str, str]] = field(default_factory=dict)
    """What kbuild has to make of those of the two ends, by their names."""

    def configure(self, name: str) -> str:
        """
        Have kbuild resolve a configuration; return the digest of the result.

        Raises KernelError if an end of the search becomes another kernel than named.
        """
        values = self.resolve(name)
        refuse_other(name, self.wanted.get(name, values), values)
        text = "\n".join(f"{key}={value}" for key, value in sorted(values.items()))
        return hashlib.sha256(text.encode()).hexdigest()

    def resolve(self, name: str) -> Mapping[str, str]:
        """Return what kbuild makes of a configuration; KernelError if it refuses."""
        file = self.bench.root / "wanted.config"
        file.write_text(self.texts[name])
        recipe = replace(
            self.bench.recipe,
            base=f"./{file.name}",
            folder=self.bench.root,
            fragments=(),
        )
        return self.bench.resolve(recipe)

    def compile(self, name: str) -> Built:
        """Build what was resolved last."""
        return self.bench.compile(name)


MOST_NAMED = 5


def refuse_other(
    name: str, wanted: Mapping[str, str], values: Mapping[str, str]
) -> None:
    """Raise KernelError if a configuration is not the one that was wanted."""
    if other := differing_names(wanted, values):
        others = first_of(
            MOST_NAMED,
            [
                f"{one} is {values.get(one, 'n')} in place of {wanted.get(one, 'n')}"
                for one in other
            ],
        )
        raise KernelError(
            f"{name}: kbuild makes another kernel of its settings: {others}; report it "
            "with both configurations"
        )


# --- boot each kernel of a search on its virtual board, once for each seed ------------

Display = Callable[[Plan], AbstractContextManager[OnEvent]]
"""Shows the progress of boots."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """What every kernel is measured with."""

    board: str
    load: str
    duration: str
    interval: str
    seeds: str
    figure: str

    def campaign(self, kernel: str) -> Campaign:
        """Return the campaign for a kernel; UsageError for a wrong value."""
        options = Options(
            target=f"virtual:{self.board}",
            kernel=kernel,
            load=self.load,
            duration=self.duration,
            interval=self.interval,
            seeds=self.seeds,
        )
        campaign = with_options(Campaign(name="bisect"), options)
        if len(campaign.loads) != 1:
            raise UsageError("--load: a search has one load, e.g. cpu")
        return campaign


@dataclass(slots=True)
class VirtualBoards:
    """Boots kernels that lie in the cache."""

    measurement: Measurement
    path: Path
    """The results of the search."""
    context: BuildContext
    part_of: Callable[[str], Part]
    """Returns the part of a kernel, by the digest of its image."""
    command: tuple[str, ...]
    display: Display
    results: StoredResults | None = None
    jobs: int | None = None

    def measure(self, built: Built, name: str) -> Values:
        """Return the figure of each seed; MeasurementError without a valid one."""
        campaign = self.measurement.campaign(built.label)
        plan = make_plan(campaign)
        store = self._store(name, campaign)
        left = remaining(plan, store.done_ids())
        if left.runs:
            self._boot(left, campaign, built, store)
        return self._values(store, campaign)

    def _store(self, name: str, campaign: Campaign) -> ResultDir:
        refuse_gone(self.path)
        path = directory_of(self.path, name)
        if CAMPAIGN.is_in(path):
            return ResultDir(path)
        return create(path, to_dict(campaign), command=self.command)

    def _boot(
        self, plan: Plan, campaign: Campaign, built: Built, store: ResultDir
    ) -> None:
        board = get_board(self.measurement.board)
        prepared = prepare_with(
            board, self.part_of(built.digest), label=built.label, context=self.context
        )
        prepared = replace(prepared, board=with_append(board, campaign.append))
        fit = capacity_for(board, jobs=self.jobs, runs=len(plan.runs))
        requests = [
            request_for(run, campaign, board, self.command) for run in plan.runs
        ]
        whole = PreparedCampaign(
            tuple((request, prepared) for request in requests), fit.boards
        )
        self.context.log(f"measuring {built.label}")
        runner = BoardRunner(whole, results=self.results, reuse=True)
        with self.display(plan) as on_event:
            for _ in execute(plan, runner, store, on_event=on_event):
                pass

    def _values(self, store: ResultDir, campaign: Campaign) -> Values:
        figure = self.measurement.figure
        for record in store.records():
            if why := why_left_out(record):
                raise MeasurementError(
                    f"{store.path}: the run with seed {record.run.seed} says nothing: "
                    f"{why}"
                )
        figures: Mapping[int, float | None] = {
            record.run.seed or 0: value_of(record, figure) for record in store.records()
        }
        values = {s: value for s, value in sorted(figures.items()) if value is not None}
        if missing := [s for s in campaign.run_seeds if s not in values]:
            raise MeasurementError(
                f"{store.path}: no {figure} with seed {missing[0]}: measure longer "
                "(--duration), or choose another figure"
            )
        return values


def directory_of(path: Path, name: str) -> Path:
    """Return where the records of a kernel are."""
    return path / SEARCH.parts / name[:40]


def worst_seed(path: Path) -> int:
    """Return the seed with the longest latency among records of a kernel."""
    records = ResultDir(path).records()
    worst = max(records, key=lambda record: record.max_ns or 0)
    return worst.run.seed or 0
