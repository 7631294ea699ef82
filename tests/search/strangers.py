"""
Simulated programs by authors who had not seen the search: patterns that they know.

The simulator is ours. `hold` was made after two of FIRST had not been found often
enough; of SECOND and THIRD nothing was known, and nothing was changed.

`PYTHONPATH=tests python -m search.strangers` prints how many of 60 searches find each,
the median of their trials, with at most 1,000 trials, and the median of chance: by how
many of 10,000 starts that are drawn evenly find it.
"""

from collections.abc import Sequence
from math import inf, log, log1p

from search.landscapes import (
    MS,
    US,
    Landscape,
    blind,
    directed,
    found_by,
    phase,
    trials_until_found,
)
from search.simulated import Part, Simulated


def _thread(
    name: str,
    priority: int,
    cpu: int,
    period_us: int,
    *body: int | str,
    phase_us: int = 0,
) -> Simulated:
    """Return a thread; its body: times in us, locks, and locks that it gives back."""
    parts: list[Part] = []
    for one in body:
        if isinstance(one, int):
            parts.append(("run", one * US))
        else:
            parts.append(("unlock" if one[0] == "-" else "lock", one.lstrip("-")))
    return Simulated(name, priority, period_us * US, tuple(parts), phase_us * US, cpu)


def _made(
    name: str,
    judged: str,
    found_us: int,
    until_ms: int,
    varied: Sequence[str],
    *threads: Simulated,
) -> Landscape:
    periods_us = {one.name: one.period_ns // US for one in threads}
    levers = tuple(phase(one, period_us=periods_us[one]) for one in varied)
    return Landscape(name, threads, levers, judged, found_us * US, until_ms * MS)


FIRST = (
    # An audio callback takes the parameter lock while the editor thread that holds it
    # is preempted on the other CPU by the MIDI thread (R. Bencina, Real-time audio
    # programming 101: time waits for nothing, 2011).
    _made(
        "plugin_automation",
        "callback",
        780,
        60,
        ["editor", "midi"],
        _thread("editor", 10, 1, 5000, 420, "par", 45, "-par", 330),
        _thread("midi", 30, 1, 3000, 360),
        _thread("callback", 50, 0, 2000, 140, "par", 20, "-par", 260),
    ),
    # A robot's base controller wants the pose that the planner locks, which itself
    # waits inside for the map that the mapper locks, and diagnostics preempt the
    # mapper: chained blocking (Sha, Rajkumar, Lehoczky, Priority inheritance protocols,
    # IEEE Trans. Computers 39(9), 1990).
    _made(
        "costmap_chain",
        "controller",
        800,
        24,
        ["mapper", "diagnostics", "planner"],
        _thread("mapper", 10, 2, 8000, 600, "map", 420, "-map", 900),
        _thread("diagnostics", 20, 2, 4000, 240),
        _thread(
            "planner", 30, 1, 4000, 300, "pose", 40, "map", 60, "-map", 30, "-pose", 500
        ),
        _thread("controller", 40, 0, 2000, 90, "pose", 25, "-pose", 250),
    ),
    # A commit takes the log latch three times in one cycle and queues each time behind
    # two busier writers that come back at once: the lock convoy of databases (Blasgen,
    # Gray, Mitoma, Price, The convoy phenomenon, SIGOPS OSR 13(2), 1979).
    _made(
        "log_convoy",
        "commit",
        700,
        36,
        ["insert", "update", "checkpoint"],
        _thread(
            "commit",
            10,
            0,
            4000,
            80,
            "log",
            30,
            "-log",
            70,
            "log",
            30,
            "-log",
            70,
            "log",
            30,
            "-log",
            60,
        ),
        _thread(
            "insert",
            20,
            1,
            6000,
            1500,
            "log",
            80,
            "-log",
            40,
            "log",
            80,
            "-log",
            40,
            "log",
            80,
            "-log",
            150,
        ),
        _thread(
            "update", 30, 2, 3000, 900, "log", 70, "-log", 50, "log", 70, "-log", 200
        ),
        _thread("checkpoint", 40, 0, 6000, 40, "log", 60, "-log", 20),
    ),
    # A packet server that suspends on a ring held by the driver executes late and again
    # at its next release: a back-to-back hit on the signalling thread (Strosnider,
    # Lehoczky, Sha, The deferrable server algorithm, IEEE Trans. Computers 44(1), 1995;
    # Chen et al., Many suspensions, many problems, 2019).
    _made(
        "deferred_server",
        "signalling",
        1300,
        24,
        ["signalling", "timers", "driver"],
        _thread("signalling", 10, 0, 4000, 500),
        _thread("timers", 20, 0, 8000, 150),
        _thread("driver", 30, 1, 4000, 250, "ring", 260, "-ring", 200),
        _thread("server", 40, 0, 1000, "ring", 40, "-ring", 300),
    ),
    # The watchdog wants the heartbeat table while the logger that has locked it is
    # preempted by telemetry, and control comes in between, all on one CPU (as on Mars
    # Pathfinder: G. Reeves, What really happened on Mars, 1997).
    _made(
        "watchdog_log",
        "watchdog",
        780,
        80,
        ["logger", "telemetry", "watchdog"],
        _thread("logger", 10, 0, 8000, 500, "beat", 50, "-beat", 300),
        _thread("telemetry", 20, 0, 5000, 550),
        _thread("control", 30, 0, 1000, 190, "beat", 8, "-beat"),
        _thread("watchdog", 40, 0, 4000, 30, "beat", 12, "-beat", 60),
    ),
    # A servo consumes the setpoint ring and then the feedback ring; the trajectory and
    # the fieldbus thread fill each of them under its lock at rates of their own, and
    # both just began, as the safety monitor takes the CPU between (motion control;
    # readers-writers blocking adds up over the locks taken, Sha, Rajkumar, Lehoczky
    # 1990).
    _made(
        "two_rings",
        "servo",
        690,
        24,
        ["trajectory", "fieldbus", "safety"],
        _thread("servo", 20, 0, 2000, 60, "set", 15, "-set", 90, "fb", 15, "-fb", 200),
        _thread("trajectory", 30, 1, 3000, 350, "set", 170, "-set", 250),
        _thread("fieldbus", 40, 2, 4000, 120, "fb", 190, "-fb", 80),
        _thread("safety", 50, 0, 6000, 130),
    ),
)

SECOND = (
    # 3D printers: USB, SD card and display DMA are each short, but one after the other
    # in one move's window they hold up the step generator, then also meet the tick
    # (skipped steps under OctoPrint, no lock involved).
    _made(
        "printer_step_coincidence",
        "stepper",
        770,
        26,
        ["usb", "sd", "display"],
        _thread("tick", 95, 0, 1000, 45, phase_us=370),
        _thread("usb", 90, 0, 4000, 170),
        _thread("sd", 80, 0, 2000, 200),
        _thread("display", 70, 0, 4000, 230),
        _thread("stepper", 50, 0, 2000, 130, phase_us=900),
        _thread("planner", 20, 0, 8000, 1200, phase_us=40),
    ),
    # Automotive: an engine controller's many rates (tooth, knock, CAN, injection,
    # lambda) meet over the diagnosis task: when the slow one falls into it, it just
    # lasts until the next of the others (missed OBD answers).
    _made(
        "engine_rates",
        "diagnosis",
        3500,
        26,
        ["can_rx", "inject", "lambda"],
        _thread("tooth", 95, 0, 500, 40, phase_us=150),
        _thread("knock", 90, 0, 2000, 80, phase_us=430),
        _thread("can_rx", 80, 0, 1000, 160),
        _thread("inject", 70, 0, 1500, 300),
        _thread("lambda", 60, 0, 6000, 520),
        _thread("diagnosis", 10, 0, 6000, 1105, phase_us=900),
    ),
    # Audio: a plugin loader swaps the graph under the graph lock and inside it waits
    # for the pool lock, whose holder, the preset browser, is preempted by MIDI on the
    # audio CPU (transitive inversion, known from DAWs).
    _made(
        "synth_graph_swap",
        "audio",
        1050,
        26,
        ["loader", "browser", "midi"],
        _thread("audio", 80, 0, 2000, 100, "graph", 420, "-graph", 60),
        _thread("midi", 60, 0, 4000, 390),
        _thread("browser", 15, 0, 4000, 160, "pool", 170, "-pool", 90),
        _thread(
            "loader",
            20,
            1,
            8000,
            260,
            "graph",
            70,
            "pool",
            60,
            "-pool",
            50,
            "-graph",
            400,
        ),
        _thread("meter", 50, 1, 2000, 230, phase_us=900),
    ),
    # Databases: the replica sender comes for the write-ahead-log lock behind vacuum,
    # and group commit and checkpointer overtake it one after the other (lock convoy,
    # known from PostgreSQL's WAL lock).
    _made(
        "wal_convoy",
        "sender",
        1200,
        32,
        ["commit", "vacuum", "checkpoint"],
        _thread("commit", 70, 0, 3000, 80, "wal", 260, "-wal", 40),
        _thread("vacuum", 20, 0, 6000, 300, "wal", 190, "-wal", 120),
        _thread("checkpoint", 60, 1, 4000, 150, "wal", 330, "-wal", 100),
        _thread("stats", 55, 2, 2000, 250, phase_us=500),
        _thread("sender", 30, 2, 6000, 120, "wal", 90, "-wal", 200, phase_us=200),
    ),
    # Medical pumps: the motor loop needs two buses and comes for the second just after
    # the display's long write began there, which the pressure sensor and the fuel gauge
    # preempt on the other CPU (Mars Pathfinder's inversion, remote).
    _made(
        "pump_two_buses",
        "motor",
        1390,
        32,
        ["pressure", "display"],
        _thread("bubble", 80, 0, 2000, 140, phase_us=340),
        _thread(
            "motor", 60, 0, 4000, 100, "spi", 60, "-spi", 150, "i2c", 60, "-i2c", 100
        ),
        _thread("gauge", 70, 1, 2000, 240, phase_us=450),
        _thread("pressure", 50, 1, 4000, 60, "spi", 250, "-spi", 60),
        _thread("display", 30, 1, 6000, 90, "i2c", 330, "-i2c", 50),
    ),
    # Robotics: frames on one CAN bus cannot be preempted, so that a long low frame just
    # begun pushes the faster ones into a joint's torque frame (push-through blocking,
    # known from Davis et al.'s refuted CAN analysis).
    _made(
        "can_push_through",
        "torque",
        2450,
        32,
        ["sync", "imu", "gripper", "firmware"],
        _thread("sync", 90, 0, 2000, "bus", 420, "-bus"),
        _thread("imu", 80, 0, 3000, "bus", 520, "-bus"),
        _thread("torque", 60, 0, 4000, "bus", 480, "-bus", phase_us=100),
        _thread("gripper", 50, 0, 6000, "bus", 500, "-bus"),
        _thread("firmware", 20, 0, 6000, "bus", 700, "-bus"),
    ),
)

THIRD = (
    # By a table of offsets, injection reads the calibration before adaptation locks it;
    # knock detection delays it into that lock while diagnosis preempts the holder
    # (S. Kramer et al., Real world automotive benchmarks for free, WATERS 2015).
    _made(
        "injection_offsets",
        "injection",
        850,
        21,
        ["knock", "diagnosis"],
        _thread("knock", 60, 0, 4000, 180),
        _thread("injection", 50, 0, 2000, 200, "cal", 30, "-cal", 150),
        _thread("adaptation", 10, 1, 4000, "cal", 34, "-cal", 210, phase_us=280),
        _thread("diagnosis", 40, 1, 5000, 400),
    ),
    # The IMU driver waits for the SPI bus that the preempted logger holds, and then
    # executes late and again in time, twice within one attitude cycle: self-suspension
    # (J.-J. Chen et al., Many suspensions, many problems, Real-Time Systems 55, 2019).
    _made(
        "imu_back_to_back",
        "attitude",
        930,
        41,
        ["logger", "gps", "attitude"],
        _thread("imu", 70, 0, 1000, 20, "spi", 50, "-spi", 130),
        _thread("attitude", 50, 0, 2000, 560),
        _thread("logger", 10, 1, 8000, 150, "spi", 120, "-spi", 400),
        _thread("gps", 40, 1, 5000, 450),
    ),
    # Frames on a CAN bus are not preempted: a long diagnostic frame has just begun when
    # all the urgent ones are queued (R. Davis et al., CAN schedulability analysis:
    # refuted, revisited and revised, Real-Time Systems 35, 2007).
    _made(
        "can_wheel_speed",
        "wheel_speed",
        2810,
        25,
        ["brake", "steering", "engine", "diagnostic"],
        _thread("brake", 60, 0, 2000, "bus", 480, "-bus"),
        _thread("steering", 50, 0, 3000, "bus", 480, "-bus"),
        _thread("engine", 40, 0, 6000, "bus", 540, "-bus"),
        _thread("wheel_speed", 30, 0, 4000, "bus", 400, "-bus"),
        _thread("diagnostic", 20, 0, 8000, "bus", 540, "-bus"),
    ),
    # A commit takes the log's latch and then a buffer's, and the holder of either is
    # descheduled in the same commit (M. Blasgen, J. Gray, M. Mitchell, T. Price, The
    # convoy phenomenon, ACM SIGOPS Operating Systems Review 13(2), 1979).
    _made(
        "commit_convoy",
        "commit",
        880,
        25,
        ["wal_writer", "statistics", "cleaner", "archiver"],
        _thread(
            "commit", 40, 0, 4000, 150, "wal", 40, "-wal", 120, "buf", 9, "-buf", 99
        ),
        _thread("wal_writer", 20, 1, 3000, 100, "wal", 180, "-wal", 150),
        _thread("statistics", 30, 1, 2000, 250),
        _thread("cleaner", 15, 2, 2000, 80, "buf", 180, "-buf", 100),
        _thread("archiver", 35, 2, 3000, 260),
    ),
    # An infusion pump's motor control waits for the dose record that the history thread
    # has locked, while display and then network execute in between: unbounded inversion
    # (B. Lampson, D. Redell, Experience with processes and monitors in Mesa, 1980).
    _made(
        "infusion_history",
        "motor",
        850,
        61,
        ["history", "display", "network"],
        _thread("motor", 60, 0, 2000, 60, "dose", 25, "-dose", 90),
        _thread("display", 40, 0, 4000, 380),
        _thread("network", 30, 0, 5000, 420),
        _thread("history", 10, 0, 6000, 90, "dose", 50, "-dose", 200),
    ),
    # A switch's forwarding waits for the address table behind aging, which the spanning
    # tree preempts, and then behind the management, which is more urgent and preempted
    # by the clock (R. Rajkumar, Real-time synchronization protocols for shared memory
    # multiprocessors, ICDCS 1990).
    _made(
        "table_aging",
        "forward",
        845,
        25,
        ["aging", "tree", "management", "clock"],
        _thread("forward", 40, 0, 2000, 120, "table", 30, "-table", 200),
        _thread("aging", 10, 1, 8000, 100, "table", 180, "-table", 60),
        _thread("tree", 30, 1, 4000, 300),
        _thread("management", 50, 2, 3000, 80, "table", 220, "-table", 100),
        _thread("clock", 70, 2, 4000, 250),
    ),
)


def chance(landscape: Landscape, *, draws: int) -> float:
    """Return the median of the trials that chance takes, by the share of hits."""
    draw = blind(seed=0)
    hits = 0
    for number in range(draws):
        trial = landscape.run(draw(landscape.space, [], number))
        hits += trial.worst_ns >= landscape.found_ns
    return log(2) / -log1p(-hits / draws) if hits else inf


if __name__ == "__main__":
    most = 1000
    for landscape in (*FIRST, *SECOND, *THIRD):
        taken = {
            seed: trials_until_found(landscape, directed(seed), budget=most)
            for seed in range(60)
        }
        by_chance = chance(landscape, draws=10_000)
        print(landscape.name, *found_by(taken, most), round(by_chance), flush=True)
