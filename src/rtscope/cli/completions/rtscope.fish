# fish completion of rtscope. Made by tools/docs/generate.py from src/rtscope/cli: edit that, then type `make docs`.

# Whether these words, and only options besides them, stand before the cursor.
function __rtscope_at
    set -l words (commandline -opc)[2..]
    set -l typed
    for word in $words
        string match -q -- '-*' $word; or set -a typed $word
    end
    test (count $typed) -ge (count $argv); or return 1
    test (count $argv) -eq 0; and test (count $typed) -gt 0; and return 1
    for i in (seq (count $argv))
        test "$typed[$i]" = "$argv[$i]"; or return 1
    end
end

function __rtscope_just
    __rtscope_at $argv; or return 1
    set -l typed (string match -v -- '-*' (commandline -opc)[2..])
    test (count $typed) -eq (count $argv)
end

complete -c rtscope -f
complete -c rtscope -s h -l help -d 'Show this help'
complete -c rtscope -n __rtscope_just -l version -d 'Version of rtscope'
complete -c rtscope -n '__rtscope_just' -a run -d 'Measure the wake-up latency of a machine'
complete -c rtscope -n '__rtscope_just' -a cyclictest -d 'Measure by a command line of cyclictest, and print what cyclictest prints'
complete -c rtscope -n '__rtscope_just' -a report -d 'Report records: on the terminal, as a page, as data'
complete -c rtscope -n '__rtscope_just' -a compare -d 'Compare records: machines, kernels or settings, run by run'
complete -c rtscope -n '__rtscope_just' -a test -d 'Test a program on virtual boards: exact times, judged by budgets'
complete -c rtscope -n '__rtscope_just' -a sweep -d 'Vary settings or loads of a virtual board, and rank their effects'
complete -c rtscope -n '__rtscope_just' -a bisect -d 'Find the commit, patch or setting that makes a kernel worse'
complete -c rtscope -n '__rtscope_just' -a tasks -d 'Show every thread of a machine: policy, priority, CPUs and remarks'
complete -c rtscope -n '__rtscope_just' -a audit -d 'Check the real-time setup of a machine, by default this one'
complete -c rtscope -n '__rtscope_just' -a explain -d 'Explain the worst wake-ups: their causes, and the time of each'
complete -c rtscope -n '__rtscope_just' -a import -d 'Import results of other tools: rt-tests, rtla, jitterdebugger, Xenomai'
complete -c rtscope -n '__rtscope_just' -a export -d 'Export records in a format that another tool reads'
complete -c rtscope -n '__rtscope_just' -a pack -d 'Pack a result into one file to mail'
complete -c rtscope -n '__rtscope_just' -a doctor -d 'Show the abilities of this machine with rtscope, and the commands for the rest'
complete -c rtscope -n '__rtscope_just' -a completion -d 'Print the completion of commands, options and values for a shell'
complete -c rtscope -n '__rtscope_just' -a app -d 'Your program: watch it from outside, and find the causes of its delays'
complete -c rtscope -n '__rtscope_just' -a board -d 'Virtual boards: list, build, export and import them'
complete -c rtscope -n '__rtscope_just' -a kernel -d 'Kernels: patch, configure, build, test, package and verify them'
complete -c rtscope -n '__rtscope_just' -a history -d 'History: an index over many results, night after night'
complete -c rtscope -n '__rtscope_just app' -a check -d 'Find the causes of delays in a running program'
complete -c rtscope -n '__rtscope_just app' -a start -d 'Start a program with a policy, CPUs, limits and locked memory, and become it'
complete -c rtscope -n '__rtscope_just app' -a unit -d 'Write a systemd unit with the rights and limits that a running program uses'
complete -c rtscope -n '__rtscope_just app' -a demo -d 'Run a scheduling scenario, and check that the kernel behaves as documented'
complete -c rtscope -n '__rtscope_just board' -a list -d 'List the virtual boards, and the size of their parts in the cache'
complete -c rtscope -n '__rtscope_just board' -a show -d 'Show a board: machine, virtual time, kernels, models and omissions'
complete -c rtscope -n '__rtscope_just board' -a build -d 'Fetch and build the parts of boards into the cache, unless they are there'
complete -c rtscope -n '__rtscope_just board' -a export -d 'Write all parts of a board into one bundle, for reproducible results elsewhere'
complete -c rtscope -n '__rtscope_just board' -a import -d 'Keep the parts of a bundle in the cache, after checking all digests'
complete -c rtscope -n '__rtscope_just board' -a image -d 'Write a disk image that boots a board: kernel, user space, boot files'
complete -c rtscope -n '__rtscope_just board' -a write -d 'Write a disk image to a card or stick, and compare what it then holds'
complete -c rtscope -n '__rtscope_just board' -a trace -d 'List the functions executed on the paths to the worst wake-ups'
complete -c rtscope -n '__rtscope_just kernel' -a list -d 'List the recipes, with release, build time, size and digest if built'
complete -c rtscope -n '__rtscope_just kernel' -a show -d 'Show a recipe: source, patches, configuration'
complete -c rtscope -n '__rtscope_just kernel' -a patches -d 'Show the patch series of a recipe, and try to apply them to a copy of its source'
complete -c rtscope -n '__rtscope_just kernel' -a config -d 'Show a configuration as kbuild resolves it, or compare two of them'
complete -c rtscope -n '__rtscope_just kernel' -a build -d 'Build kernels into the cache, unless they are there'
complete -c rtscope -n '__rtscope_just kernel' -a check -d 'Boot kernels on their virtual boards under each load, and check their logs'
complete -c rtscope -n '__rtscope_just kernel' -a package -d 'Package a kernel for its board: an archive, and a Debian package'
complete -c rtscope -n '__rtscope_just kernel' -a verify -d 'Verify that a kernel is the intended one, running or before its installation'
complete -c rtscope -n '__rtscope_just history' -a index -d 'Index the records below folders: only new and changed ones are read'
complete -c rtscope -n '__rtscope_just history' -a list -d 'List runs of the index with their figures, the newest first'
complete -c rtscope -n '__rtscope_just history' -a show -d 'Show latencies over time: each night'\''s worst, and since when a series is other'
complete -c rtscope -n '__rtscope_just history' -a check -d 'Check whether the newest results are worse than those before'
complete -c rtscope -n '__rtscope_just history' -a query -d 'Ask the index SQL: a SELECT of your own, or a query with a name'
complete -c rtscope -n '__rtscope_just history' -a parquet -d 'Write the index as Parquet files, which DuckDB, pandas and others read'
complete -c rtscope -n '__rtscope_just history' -a thin -d 'Free disk: remove recordings, traces and kept samples of old nights'
complete -c rtscope -n '__rtscope_just history' -a schedule -d 'Write a timer and services of systemd that measure every night'
complete -c rtscope -n '__rtscope_just history' -a tag -d 'Tag result directories, for a baseline: rtscope history check --baseline tag:good'
complete -c rtscope -n '__rtscope_at run' -l load -s l -d 'Loads, one run under each' -xa '(__fish_append , idle cpu os memory storage network packets interrupts timers switch pipe oom custom)'
complete -c rtscope -n '__rtscope_at run' -l event -d 'Events that wake the measuring threads, one run with each' -xa 'timer futex eventfd pipe signal mq sem cond pty serial udp raw xdp can uio poll hwlat timerlat list'
complete -c rtscope -n '__rtscope_at run' -l duration -s d -d 'Duration of each run' -x
complete -c rtscope -n '__rtscope_at run' -l interval -d 'Interval between two wake-ups of a measuring thread' -x
complete -c rtscope -n '__rtscope_at run' -l policy -d 'Scheduling policy of the measuring threads' -xa '(__fish_append , fifo rr other batch idle deadline)'
complete -c rtscope -n '__rtscope_at run' -l priority -s p -d 'Priority of the measuring threads, policies fifo and rr only' -x
complete -c rtscope -n '__rtscope_at run' -l cpus -d 'CPUs to measure' -x
complete -c rtscope -n '__rtscope_at run' -l repetitions -d 'Repetitions of each run' -x
complete -c rtscope -n '__rtscope_at run' -l warmup -d 'Warm-up time of a load before the measurement' -x
complete -c rtscope -n '__rtscope_at run' -l settle -d 'Idle time before the first run' -x
complete -c rtscope -n '__rtscope_at run' -l command -d 'Command of the custom load' -x
complete -c rtscope -n '__rtscope_at run' -l storage-dir -d 'Directory on a real disk for the storage load' -xa '(__fish_complete_directories)'
complete -c rtscope -n '__rtscope_at run' -l worst -d 'Number of worst wake-ups to keep for each CPU, 1 to 64' -x
complete -c rtscope -n '__rtscope_at run' -l explain -d 'Trace of the kernel around the worst wake-ups of a machine, with the cost of tracing'
complete -c rtscope -n '__rtscope_at run' -l parts -d 'Duration of each part of all wake-ups of a virtual board'
complete -c rtscope -n '__rtscope_at run' -l keep-samples -d 'Each wake-up with its time, compressed beside the record, for a picture over time'
complete -c rtscope -n '__rtscope_at run' -l target -s t -d 'Machine to measure' -xa 'local ssh: virtual:jh7110 virtual:pc virtual:rpi3'
complete -c rtscope -n '__rtscope_at run' -l kernel -s k -d 'Kernels of a virtual board, by name or path of an image' -xa '(__fish_append , debian-6.12 debian-6.12-rt debian-6.17 debian-6.17-rt debian-6.1 debian-6.1-rt jh7110-6.1 jh7110-6.1-rt jh7110-6.1-rt-debug jh7110-6.1-rt-nolazy jh7110-6.12 jh7110-6.12-board jh7110-6.12-dynamic jh7110-6.12-rt jh7110-6.12-rt-board jh7110-7.3 jh7110-7.3-board jh7110-7.3-dynamic jh7110-7.3-rt jh7110-7.3-rt-board pc-6.12 pc-6.12-board pc-6.12-rt pc-6.12-rt-board pc-6.12-rtgroup rpi-6.12 rpi-6.12-board rpi-6.12-rt rpi-6.12-rt-board)'
complete -c rtscope -n '__rtscope_at run' -l deadline -d 'Longest allowed latency, for a verdict of the report' -x
complete -c rtscope -n '__rtscope_at run' -l claim -d 'Claim to test' -x
complete -c rtscope -n '__rtscope_at run' -l min-boots -d 'Minimum number of boots behind a claim' -x
complete -c rtscope -n '__rtscope_at run' -l require-identical -d 'Exit status 1 unless all repetitions (2 or more) on a virtual board give identical results'
complete -c rtscope -n '__rtscope_at run' -l seed -d 'Random seed of a virtual board' -x
complete -c rtscope -n '__rtscope_at run' -l seeds -d 'Random seeds of a virtual board, the whole campaign with each' -x
complete -c rtscope -n '__rtscope_at run' -l guest-files -d 'Files to copy to /files in the guest of a virtual board, for the custom load' -rF
complete -c rtscope -n '__rtscope_at run' -l record -l no-record -d 'Recording of the paths to the worst wake-ups of a virtual board'
complete -c rtscope -n '__rtscope_at run' -l host-limit -d 'Host time after which a virtual board is ended' -x
complete -c rtscope -n '__rtscope_at run' -l qemu -d 'Path of your own QEMU for a virtual board' -rF
complete -c rtscope -n '__rtscope_at run' -l append -d 'Additional kernel parameters of a virtual board' -x
complete -c rtscope -n '__rtscope_at run' -l lockfile -d 'Lock file with the exact packages of a virtual board' -rF
complete -c rtscope -n '__rtscope_at run' -l governor -d 'CPU frequency governor during the campaign, restored afterwards' -x
complete -c rtscope -n '__rtscope_at run' -l hold-cpu-awake -d 'No CPU idle states during the measurement'
complete -c rtscope -n '__rtscope_at run' -l rt-throttling -d 'Real-time throttling during the campaign, restored afterwards' -xa 'keep off'
complete -c rtscope -n '__rtscope_at run' -l tuned -d 'Audit checks whose remedies apply during the campaign, restored afterwards' -xa '(__fish_append , safe fixed_frequency turbo energy_preference idle_states irq_affinity default_irq_affinity interrupt_threads workqueues busy_polling interrupt_coalescing deferred_polls threaded_polls preemption_model scaling_governor transparent_hugepages ksm numa_balancing locked_memory_moves rt_throttling rt_safety_net deadline_admission fair_server watchdog stack_tracer)'
complete -c rtscope -n '__rtscope_at run' -l lab -d 'File of boards, which are measured beside each other' -rF
complete -c rtscope -n '__rtscope_at run' -l tag -d 'Tags that a board of the lab needs to be measured' -x
complete -c rtscope -n '__rtscope_at run' -l identical-to -d 'Stored record of a virtual board' -rF
complete -c rtscope -n '__rtscope_at run' -l jobs -d 'Number of virtual boards to run at once' -x
complete -c rtscope -n '__rtscope_at run' -l bundle -d 'Bundle of rtscope board export to run from, without network' -rF
complete -c rtscope -n '__rtscope_at run' -l reuse -d 'Stored results of equal inputs in place of new measurements of virtual boards'
complete -c rtscope -n '__rtscope_at run' -l out -s o -d 'Directory of the results' -rF
complete -c rtscope -n '__rtscope_at run' -l resume -d 'Directory of an interrupted campaign to continue' -xa '(__fish_complete_directories)'
complete -c rtscope -n '__rtscope_at run' -l yes -d 'Consent to run what a resumed campaign or a bundle names'
complete -c rtscope -n '__rtscope_at run' -l json -d 'Result as JSON'
complete -c rtscope -n '__rtscope_at run' -l quiet -s q -d 'The answer alone, in one line'
complete -c rtscope -n '__rtscope_at run' -l verbose -s v -d 'Everything on the terminal'
complete -c rtscope -n '__rtscope_at run' -F
complete -c rtscope -n '__rtscope_at cyclictest'
complete -c rtscope -n '__rtscope_at report' -l html -d 'HTML page to write' -rF
complete -c rtscope -n '__rtscope_at report' -l format -d 'Format of the report' -xa 'table markdown csv json'
complete -c rtscope -n '__rtscope_at report' -l json -d 'Result as JSON, short for --format json'
complete -c rtscope -n '__rtscope_at report' -l quiet -s q -d 'The answer alone, in one line'
complete -c rtscope -n '__rtscope_at report' -l verbose -s v -d 'Everything on the terminal'
complete -c rtscope -n '__rtscope_at report' -l notes -d 'Every caveat with its numbers and its remedy'
complete -c rtscope -n '__rtscope_at report' -l summary -d 'Markdown file to write for a merge request' -rF
complete -c rtscope -n '__rtscope_at report' -l charts -d 'Directory for each chart as SVG and PNG' -rF
complete -c rtscope -n '__rtscope_at report' -l deadline -d 'Longest allowed latency' -x
complete -c rtscope -n '__rtscope_at report' -l claim -d 'Claim to test' -x
complete -c rtscope -n '__rtscope_at report' -l soft -d 'Soft or firm deadline, as a value from 1 to 0 over the latency, whose average over all wake-ups is shown' -x
complete -c rtscope -n '__rtscope_at report' -l min-boots -d 'Minimum number of boots behind a claim' -x
complete -c rtscope -n '__rtscope_at report' -F
complete -c rtscope -n '__rtscope_at compare' -l published -d 'Published table to compare with' -xa 'raspberry-pi-2018 scheduler-talk-raspberry-pi-3bplus scheduler-talk-x86-64 starfive-jh7110-devkit starfive-visionfive2'
complete -c rtscope -n '__rtscope_at compare' -l html -d 'HTML page to write' -rF
complete -c rtscope -n '__rtscope_at compare' -l deadline -d 'Deadline whose misses are compared too' -x
complete -c rtscope -n '__rtscope_at compare' -l format -d 'Format of the comparison' -xa 'table markdown json'
complete -c rtscope -n '__rtscope_at compare' -l json -d 'Result as JSON, short for --format json'
complete -c rtscope -n '__rtscope_at compare' -l quiet -s q -d 'The answer alone, in one line'
complete -c rtscope -n '__rtscope_at compare' -l verbose -s v -d 'Everything on the terminal'
complete -c rtscope -n '__rtscope_at compare' -l notes -d 'Every caveat with its numbers and its remedy'
complete -c rtscope -n '__rtscope_at compare' -F
complete -c rtscope -n '__rtscope_at test' -l build -d 'Command to run on this computer first' -x
complete -c rtscope -n '__rtscope_at test' -l root -d 'Directory whose files the program finds at its root' -xa '(__fish_complete_directories)'
complete -c rtscope -n '__rtscope_at test' -l files -d 'Additional files' -x
complete -c rtscope -n '__rtscope_at test' -l package -d 'Debian packages, with all that they depend on' -x
complete -c rtscope -n '__rtscope_at test' -l environment -d 'Environment variables' -x
complete -c rtscope -n '__rtscope_at test' -l value -d 'Values of {NAME} in command and environment' -x
complete -c rtscope -n '__rtscope_at test' -l phase -d 'Times after a multiple of a period at which threads begin, by their number in the order in which they are made' -x
complete -c rtscope -n '__rtscope_at test' -l stdin -d 'File for the standard input' -rF
complete -c rtscope -n '__rtscope_at test' -l directory -d 'Working directory on the board' -xa '(__fish_complete_directories)'
complete -c rtscope -n '__rtscope_at test' -l user -d 'User on the board' -x
complete -c rtscope -n '__rtscope_at test' -l policy -d 'Scheduling policy that the program begins with' -xa '(__fish_append , fifo rr other batch idle deadline)'
complete -c rtscope -n '__rtscope_at test' -l priority -s p -d 'Priority that it begins with, 1 to 99' -x
complete -c rtscope -n '__rtscope_at test' -l board -d 'Virtual boards' -xa '(__fish_append , jh7110 pc rpi3)'
complete -c rtscope -n '__rtscope_at test' -l kernel -s k -d 'Kernels, by name or path of an image' -xa '(__fish_append , debian-6.12 debian-6.12-rt debian-6.17 debian-6.17-rt debian-6.1 debian-6.1-rt jh7110-6.1 jh7110-6.1-rt jh7110-6.1-rt-debug jh7110-6.1-rt-nolazy jh7110-6.12 jh7110-6.12-board jh7110-6.12-dynamic jh7110-6.12-rt jh7110-6.12-rt-board jh7110-7.3 jh7110-7.3-board jh7110-7.3-dynamic jh7110-7.3-rt jh7110-7.3-rt-board pc-6.12 pc-6.12-board pc-6.12-rt pc-6.12-rt-board pc-6.12-rtgroup rpi-6.12 rpi-6.12-board rpi-6.12-rt rpi-6.12-rt-board)'
complete -c rtscope -n '__rtscope_at test' -l load -s l -d 'Loads beside the program, one boot under each' -xa '(__fish_append , idle cpu os memory storage network packets interrupts timers switch pipe oom custom)'
complete -c rtscope -n '__rtscope_at test' -l cpus -d 'CPUs that the program may use' -x
complete -c rtscope -n '__rtscope_at test' -l seed -d 'Random seeds, one boot for each' -x
complete -c rtscope -n '__rtscope_at test' -l append -d 'Additional kernel parameters' -x
complete -c rtscope -n '__rtscope_at test' -l qemu -d 'Path of your own QEMU' -rF
complete -c rtscope -n '__rtscope_at test' -l lockfile -d 'Lock file with the exact packages of board and program' -rF
complete -c rtscope -n '__rtscope_at test' -l warmup -d 'Time of the program that is not judged, from its start' -x
complete -c rtscope -n '__rtscope_at test' -l duration -s d -d 'Longest time that is judged' -x
complete -c rtscope -n '__rtscope_at test' -l cycles -d 'Cycles of each thread to judge' -x
complete -c rtscope -n '__rtscope_at test' -l settle -d 'Idle time after the boot' -x
complete -c rtscope -n '__rtscope_at test' -l starts -d 'Starts of the program in one boot, at different times in a timer tick' -x
complete -c rtscope -n '__rtscope_at test' -l period -d 'Period of the cycles' -x
complete -c rtscope -n '__rtscope_at test' -l response -d 'Longest time from the begin of a cycle, its due time, to its end' -x
complete -c rtscope -n '__rtscope_at test' -l latency -d 'Longest time from the begin of a cycle to the first instruction of the thread' -x
complete -c rtscope -n '__rtscope_at test' -l execution -d 'Longest time on a CPU in a cycle' -x
complete -c rtscope -n '__rtscope_at test' -l instructions -d 'Most instructions of the program itself in a cycle' -x
complete -c rtscope -n '__rtscope_at test' -l missed -d 'Most periods skipped, or not done when the next was due' -x
complete -c rtscope -n '__rtscope_at test' -l allocations -d 'Most calls that allocate or free memory, in all cycles' -x
complete -c rtscope -n '__rtscope_at test' -l faults -d 'Most page faults in all cycles' -x
complete -c rtscope -n '__rtscope_at test' -l blocking -d 'Most waits in all cycles, but for those for the next cycle' -x
complete -c rtscope -n '__rtscope_at test' -l inversions -d 'Most waits for a lock that a less urgent thread of the program held' -x
complete -c rtscope -n '__rtscope_at test' -l quiet -s q -d 'The answer alone, in one line'
complete -c rtscope -n '__rtscope_at test' -l verbose -s v -d 'Everything on the terminal'
complete -c rtscope -n '__rtscope_at test' -l jobs -d 'Boots at the same time' -x
complete -c rtscope -n '__rtscope_at test' -l save-lock -d 'Lock file to write with the exact packages used' -rF
complete -c rtscope -n '__rtscope_at test' -l search -d 'Starts in which to search for the worst response, several in each boot' -x
complete -c rtscope -n '__rtscope_at test' -l search-seed -d 'Random seed of the search' -x
complete -c rtscope -n '__rtscope_at test' -l search-thread -d 'Thread whose worst response is searched' -x
complete -c rtscope -n '__rtscope_at test' -l save -d 'File for the results, to compare later ones with' -rF
complete -c rtscope -n '__rtscope_at test' -l identical-to -d 'File of --save' -rF
complete -c rtscope -n '__rtscope_at test' -l no-worse-than -d 'File of --save' -rF
complete -c rtscope -n '__rtscope_at test' -l tolerance -d 'Share that --no-worse-than allows to be more' -x
complete -c rtscope -n '__rtscope_at test' -l junit -d 'JUnit file to write, a case for each budget' -rF
complete -c rtscope -n '__rtscope_at test' -l markdown -d 'Markdown file to write for a merge request' -rF
complete -c rtscope -n '__rtscope_at test' -l html -d 'HTML page to write' -rF
complete -c rtscope -n '__rtscope_at test' -l explain -l no-explain -d 'Boot again with all instructions of the worst cycle recorded, and name its cause'
complete -c rtscope -n '__rtscope_at test' -l json -d 'Result as JSON'
complete -c rtscope -n '__rtscope_at test' -F
complete -c rtscope -n '__rtscope_at sweep' -l target -s t -d 'Virtual board instead of that of the file' -xa 'local ssh: virtual:jh7110 virtual:pc virtual:rpi3'
complete -c rtscope -n '__rtscope_at sweep' -l kernel -s k -d 'Kernels of the base instead of those of the file' -xa '(__fish_append , debian-6.12 debian-6.12-rt debian-6.17 debian-6.17-rt debian-6.1 debian-6.1-rt jh7110-6.1 jh7110-6.1-rt jh7110-6.1-rt-debug jh7110-6.1-rt-nolazy jh7110-6.12 jh7110-6.12-board jh7110-6.12-dynamic jh7110-6.12-rt jh7110-6.12-rt-board jh7110-7.3 jh7110-7.3-board jh7110-7.3-dynamic jh7110-7.3-rt jh7110-7.3-rt-board pc-6.12 pc-6.12-board pc-6.12-rt pc-6.12-rt-board pc-6.12-rtgroup rpi-6.12 rpi-6.12-board rpi-6.12-rt rpi-6.12-rt-board)'
complete -c rtscope -n '__rtscope_at sweep' -l seed -d 'Random seed of the base instead of the seeds of the file' -x
complete -c rtscope -n '__rtscope_at sweep' -l seeds -d 'Random seeds of the base instead of those of the file' -x
complete -c rtscope -n '__rtscope_at sweep' -l jobs -d 'Number of virtual boards to run at once' -x
complete -c rtscope -n '__rtscope_at sweep' -l on -d 'Where boards run' -x
complete -c rtscope -n '__rtscope_at sweep' -l tls-ca -d 'Certificate of the authority of a tls:// scheduler' -rF
complete -c rtscope -n '__rtscope_at sweep' -l tls-cert -d 'Own certificate for a tls:// scheduler' -rF
complete -c rtscope -n '__rtscope_at sweep' -l tls-key -d 'Key of the own certificate' -rF
complete -c rtscope -n '__rtscope_at sweep' -l only -d 'Axes or levels to measure now, beside the base' -x
complete -c rtscope -n '__rtscope_at sweep' -l dry-run -d 'Plan alone, without any measurement'
complete -c rtscope -n '__rtscope_at sweep' -l reuse -l no-reuse -d 'Stored results of equal inputs in place of new measurements'
complete -c rtscope -n '__rtscope_at sweep' -l out -s o -d 'Directory of the results' -rF
complete -c rtscope -n '__rtscope_at sweep' -l resume -d 'Directory of an interrupted sweep to continue' -xa '(__fish_complete_directories)'
complete -c rtscope -n '__rtscope_at sweep' -l yes -d 'Consent to run what a resumed sweep or a RECORD names'
complete -c rtscope -n '__rtscope_at sweep' -l json -d 'Result as JSON'
complete -c rtscope -n '__rtscope_at sweep' -l quiet -s q -d 'The answer alone, in one line'
complete -c rtscope -n '__rtscope_at sweep' -l verbose -s v -d 'Everything on the terminal'
complete -c rtscope -n '__rtscope_at sweep' -F
complete -c rtscope -n '__rtscope_at bisect' -l good -d 'Good end' -x
complete -c rtscope -n '__rtscope_at bisect' -l bad -d 'Bad end' -x
complete -c rtscope -n '__rtscope_at bisect' -l tree -d 'Git repository of a kernel whose commits to search' -rF
complete -c rtscope -n '__rtscope_at bisect' -l test -d 'Test file as the criterion, to search the commits of the program in whose repository it is' -rF
complete -c rtscope -n '__rtscope_at bisect' -l patches -d 'Series of patches to search' -x
complete -c rtscope -n '__rtscope_at bisect' -l recipe -d 'Kernel recipe with configuration, board and, without --tree, source' -x
complete -c rtscope -n '__rtscope_at bisect' -l figure -d 'Figure that is worse' -x
complete -c rtscope -n '__rtscope_at bisect' -l margin -d 'Least difference of the medians over seeds, as a time or a share' -x
complete -c rtscope -n '__rtscope_at bisect' -l load -s l -d 'Load to measure under' -xa '(__fish_append , idle cpu os memory storage network packets interrupts timers switch pipe oom custom)'
complete -c rtscope -n '__rtscope_at bisect' -l duration -s d -d 'Virtual time to measure with each seed' -x
complete -c rtscope -n '__rtscope_at bisect' -l interval -d 'Interval between two wake-ups' -x
complete -c rtscope -n '__rtscope_at bisect' -l seeds -d 'Seeds of the board, N for 1 to N, or a list' -x
complete -c rtscope -n '__rtscope_at bisect' -l measured -d 'Results of one kernel on a machine or board, to judge by those of --good and --bad for git bisect run' -rF
complete -c rtscope -n '__rtscope_at bisect' -l jobs -d 'Number of virtual boards to run at once' -x
complete -c rtscope -n '__rtscope_at bisect' -l dry-run -d 'Print what the search takes'
complete -c rtscope -n '__rtscope_at bisect' -l out -s o -d 'Directory of the results' -rF
complete -c rtscope -n '__rtscope_at bisect' -l resume -d 'Directory of an interrupted search to continue' -xa '(__fish_complete_directories)'
complete -c rtscope -n '__rtscope_at bisect' -l yes -d 'Consent to run what a resumed search names'
complete -c rtscope -n '__rtscope_at bisect' -l json -d 'Result as JSON'
complete -c rtscope -n '__rtscope_at bisect' -l quiet -s q -d 'The answer alone, in one line'
complete -c rtscope -n '__rtscope_at bisect' -l verbose -s v -d 'Everything on the terminal'
complete -c rtscope -n '__rtscope_at tasks' -l target -s t -d 'Running machine' -xa 'local ssh:'
complete -c rtscope -n '__rtscope_at tasks' -l rt -d 'Only real-time threads'
complete -c rtscope -n '__rtscope_at tasks' -l cpu -d 'Only threads allowed on this CPU' -x
complete -c rtscope -n '__rtscope_at tasks' -l pid -d 'Only the process of this PID or TID' -x
complete -c rtscope -n '__rtscope_at tasks' -l sort -d 'Order of the threads' -xa 'process priority share time switches faults cpu name'
complete -c rtscope -n '__rtscope_at tasks' -l share -d 'Time over which to measure CPU shares' -x
complete -c rtscope -n '__rtscope_at tasks' -l watch -d 'Refresh interval of a live list with CPU shares' -x
complete -c rtscope -n '__rtscope_at tasks' -l changes -d 'With --watch, a line for each change in place of the list'
complete -c rtscope -n '__rtscope_at tasks' -l count -d 'With --watch, number of looks after which it ends' -x
complete -c rtscope -n '__rtscope_at tasks' -l shield -d 'CPUs to keep for COMMAND, or for what you bring in until Ctrl-C' -x
complete -c rtscope -n '__rtscope_at tasks' -l json -d 'Result as JSON'
complete -c rtscope -n '__rtscope_at tasks' -l verbose -s v -d 'Control group and capabilities below each thread, where they change'
complete -c rtscope -n '__rtscope_at tasks'
complete -c rtscope -n '__rtscope_at audit' -l profile -d 'Purpose of the machine' -xa 'control polling audio host guest'
complete -c rtscope -n '__rtscope_at audit' -l cpus -d 'CPUs for real-time threads' -x
complete -c rtscope -n '__rtscope_at audit' -l target -s t -d 'Machine to check' -xa 'local ssh: virtual:jh7110 virtual:pc virtual:rpi3'
complete -c rtscope -n '__rtscope_at audit' -l kernel -s k -d 'Kernel of a virtual board, by name or path of an image' -xa '(__fish_append , debian-6.12 debian-6.12-rt debian-6.17 debian-6.17-rt debian-6.1 debian-6.1-rt jh7110-6.1 jh7110-6.1-rt jh7110-6.1-rt-debug jh7110-6.1-rt-nolazy jh7110-6.12 jh7110-6.12-board jh7110-6.12-dynamic jh7110-6.12-rt jh7110-6.12-rt-board jh7110-7.3 jh7110-7.3-board jh7110-7.3-dynamic jh7110-7.3-rt jh7110-7.3-rt-board pc-6.12 pc-6.12-board pc-6.12-rt pc-6.12-rt-board pc-6.12-rtgroup rpi-6.12 rpi-6.12-board rpi-6.12-rt rpi-6.12-rt-board)'
complete -c rtscope -n '__rtscope_at audit' -l append -d 'Additional kernel command line of a virtual board' -x
complete -c rtscope -n '__rtscope_at audit' -l config -d 'Kernel configuration to check instead of a machine' -rF
complete -c rtscope -n '__rtscope_at audit' -l root -d 'Captured file tree, or archive of --capture, to check instead of a machine' -xa '(__fish_complete_directories)'
complete -c rtscope -n '__rtscope_at audit' -l observe -d 'Seconds to observe the machine, 0 to 60' -x
complete -c rtscope -n '__rtscope_at audit' -l capture -d 'Archive to write with the files that were read, to send to others' -rF
complete -c rtscope -n '__rtscope_at audit' -l unit -d 'Systemd unit to check instead, by name or file' -x
complete -c rtscope -n '__rtscope_at audit' -l user -d 'The unit is one of a user'\''s manager (systemctl --user)'
complete -c rtscope -n '__rtscope_at audit' -l apply -d 'Checks whose remedies to apply' -xa '(__fish_append , safe fixed_frequency turbo energy_preference idle_states irq_affinity default_irq_affinity interrupt_threads workqueues busy_polling interrupt_coalescing deferred_polls threaded_polls preemption_model scaling_governor transparent_hugepages ksm numa_balancing locked_memory_moves rt_throttling rt_safety_net deadline_admission fair_server watchdog stack_tracer)'
complete -c rtscope -n '__rtscope_at audit' -l dry-run -d 'Preview of the changes of --apply, without any change'
complete -c rtscope -n '__rtscope_at audit' -l restore -d 'Undo of all changes by --apply'
complete -c rtscope -n '__rtscope_at audit' -l fail-on -d 'Lowest severity that gives exit status 1' -xa 'low medium high fatal'
complete -c rtscope -n '__rtscope_at audit' -l json -d 'Result as JSON'
complete -c rtscope -n '__rtscope_at audit' -l quiet -s q -d 'The answer alone, in one line'
complete -c rtscope -n '__rtscope_at audit' -l verbose -s v -d 'Everything on the terminal'
complete -c rtscope -n '__rtscope_at explain' -l run -d 'Run of a campaign' -x
complete -c rtscope -n '__rtscope_at explain' -l trace -d 'Trace instead of a record' -rF
complete -c rtscope -n '__rtscope_at explain' -l thread -d 'Thread of --trace by name or PID' -x
complete -c rtscope -n '__rtscope_at explain' -l at -d 'Time in --trace at which the thread was late, in seconds' -x
complete -c rtscope -n '__rtscope_at explain' -l worst -d 'Number of wake-ups of each run to show in full' -x
complete -c rtscope -n '__rtscope_at explain' -l bound -d 'Latency bound from observed critical sections'
complete -c rtscope -n '__rtscope_at explain' -l json -d 'Result as JSON'
complete -c rtscope -n '__rtscope_at explain' -l quiet -s q -d 'The answer alone, in one line'
complete -c rtscope -n '__rtscope_at explain' -l verbose -s v -d 'Everything on the terminal'
complete -c rtscope -n '__rtscope_at explain' -l html -d 'HTML page to write, with charts' -rF
complete -c rtscope -n '__rtscope_at explain' -l perfetto -d 'Trace to write for ui.perfetto.dev' -rF
complete -c rtscope -n '__rtscope_at explain' -l ctf -d 'New folder for a trace in the Common Trace Format, for babeltrace2 and Trace Compass' -rF
complete -c rtscope -n '__rtscope_at explain' -F
complete -c rtscope -n '__rtscope_at import' -l out -s o -d 'Directory of the records' -rF
complete -c rtscope -n '__rtscope_at import' -l load -s l -d 'Load that ran meanwhile' -xa '(__fish_append , idle cpu os memory storage network packets interrupts timers switch pipe oom custom)'
complete -c rtscope -n '__rtscope_at import' -l interval -d 'Time between two wake-ups of a thread' -x
complete -c rtscope -n '__rtscope_at import' -l duration -s d -d 'Length of each run' -x
complete -c rtscope -n '__rtscope_at import' -l policy -d 'Scheduling policy of the threads' -xa '(__fish_append , fifo rr other batch idle deadline)'
complete -c rtscope -n '__rtscope_at import' -l priority -s p -d 'Priority of the threads' -x
complete -c rtscope -n '__rtscope_at import' -l machine -d 'Name of the machine' -x
complete -c rtscope -n '__rtscope_at import' -l kernel -s k -d 'Release of the kernel' -xa '(__fish_append , debian-6.12 debian-6.12-rt debian-6.17 debian-6.17-rt debian-6.1 debian-6.1-rt jh7110-6.1 jh7110-6.1-rt jh7110-6.1-rt-debug jh7110-6.1-rt-nolazy jh7110-6.12 jh7110-6.12-board jh7110-6.12-dynamic jh7110-6.12-rt jh7110-6.12-rt-board jh7110-7.3 jh7110-7.3-board jh7110-7.3-dynamic jh7110-7.3-rt jh7110-7.3-rt-board pc-6.12 pc-6.12-board pc-6.12-rt pc-6.12-rt-board pc-6.12-rtgroup rpi-6.12 rpi-6.12-board rpi-6.12-rt rpi-6.12-rt-board)'
complete -c rtscope -n '__rtscope_at import' -l preempt-rt -d 'Whether the kernel is PREEMPT_RT' -xa 'yes no'
complete -c rtscope -n '__rtscope_at import' -l unit -d 'Unit of the latencies in a text' -xa 'us ns ms s'
complete -c rtscope -n '__rtscope_at import' -l column -d 'Column of latencies, by heading or number' -x
complete -c rtscope -n '__rtscope_at import' -l time-column -d 'Column of time stamps and its unit' -x
complete -c rtscope -n '__rtscope_at import' -l count-column -d 'Column that counts how often each latency was seen' -x
complete -c rtscope -n '__rtscope_at import'
complete -c rtscope -n '__rtscope_at export' -l to -d 'Format to write' -xa 'cyclictest-text cyclictest-json jitterdebugger-json rtla-text junit ktap lava kcidb openmetrics csv samples-csv otava-csv influx benchmark-action bencher'
complete -c rtscope -n '__rtscope_at export' -l out -s o -d 'File to write' -rF
complete -c rtscope -n '__rtscope_at export' -l deadline -d 'Deadline for junit, ktap, lava and kcidb' -x
complete -c rtscope -n '__rtscope_at export' -l origin -d 'Name under which kcidb knows who reports' -x
complete -c rtscope -n '__rtscope_at export' -F
complete -c rtscope -n '__rtscope_at pack' -l out -s o -d 'Archive to write' -rF
complete -c rtscope -n '__rtscope_at pack' -l max-size -d 'Largest archive' -x
complete -c rtscope -n '__rtscope_at pack' -l redact -d 'Replace names of hosts and users, addresses, serial numbers and secrets'
complete -c rtscope -n '__rtscope_at pack' -xa '(__fish_complete_directories)'
complete -c rtscope -n '__rtscope_at doctor' -l target -s t -d 'Machine to ask' -xa 'local ssh:'
complete -c rtscope -n '__rtscope_at doctor' -l json -d 'Result as JSON'
complete -c rtscope -n '__rtscope_at doctor' -l quiet -s q -d 'The answer alone, in one line'
complete -c rtscope -n '__rtscope_at doctor' -l verbose -s v -d 'Everything on the terminal'
complete -c rtscope -n '__rtscope_at completion' -a 'bash zsh fish'
complete -c rtscope -n '__rtscope_at app check' -l target -s t -d 'Machine' -xa 'local ssh: virtual:jh7110 virtual:pc virtual:rpi3'
complete -c rtscope -n '__rtscope_at app check' -l kernel -s k -d 'Kernel of a virtual board, by name or path of an image' -xa '(__fish_append , debian-6.12 debian-6.12-rt debian-6.17 debian-6.17-rt debian-6.1 debian-6.1-rt jh7110-6.1 jh7110-6.1-rt jh7110-6.1-rt-debug jh7110-6.1-rt-nolazy jh7110-6.12 jh7110-6.12-board jh7110-6.12-dynamic jh7110-6.12-rt jh7110-6.12-rt-board jh7110-7.3 jh7110-7.3-board jh7110-7.3-dynamic jh7110-7.3-rt jh7110-7.3-rt-board pc-6.12 pc-6.12-board pc-6.12-rt pc-6.12-rt-board pc-6.12-rtgroup rpi-6.12 rpi-6.12-board rpi-6.12-rt rpi-6.12-rt-board)'
complete -c rtscope -n '__rtscope_at app check' -l append -d 'Additional kernel parameters of a virtual board' -x
complete -c rtscope -n '__rtscope_at app check' -l seed -d 'Seed of a virtual board'\''s random numbers' -x
complete -c rtscope -n '__rtscope_at app check' -l duration -s d -d 'Time to watch' -x
complete -c rtscope -n '__rtscope_at app check' -l settle -d 'Time before a command is watched' -x
complete -c rtscope -n '__rtscope_at app check' -l thread -d 'Threads to judge, by name or TID' -x
complete -c rtscope -n '__rtscope_at app check' -l period -d 'Period of the cycles of the judged threads' -x
complete -c rtscope -n '__rtscope_at app check' -l response -d 'Longest response time to allow, from the begin of a cycle to its end' -x
complete -c rtscope -n '__rtscope_at app check' -l light -d 'Watch without probes and cycles'
complete -c rtscope -n '__rtscope_at app check' -l fail-on -d 'Least weight of a finding for exit status 1' -xa 'high medium low never'
complete -c rtscope -n '__rtscope_at app check' -l html -d 'HTML page to write, with charts' -rF
complete -c rtscope -n '__rtscope_at app check' -l perfetto -d 'Trace of the longest cycles to write for ui.perfetto.dev' -rF
complete -c rtscope -n '__rtscope_at app check' -l junit -d 'JUnit XML to write, a case for each finding looked for' -rF
complete -c rtscope -n '__rtscope_at app check' -l debuginfod -d 'Server to download debug files from' -x
complete -c rtscope -n '__rtscope_at app check' -l quiet -s q -d 'The answer alone, in one line'
complete -c rtscope -n '__rtscope_at app check' -l verbose -s v -d 'Everything on the terminal'
complete -c rtscope -n '__rtscope_at app check' -l json -d 'Result as JSON'
complete -c rtscope -n '__rtscope_at app check' -F
complete -c rtscope -n '__rtscope_at app start' -l policy -d 'Scheduling policy' -xa '(__fish_append , fifo rr other batch idle deadline)'
complete -c rtscope -n '__rtscope_at app start' -l priority -s p -d 'Priority, 1 to 99, policies fifo and rr only' -x
complete -c rtscope -n '__rtscope_at app start' -l runtime -d 'CPU time in each period, policy deadline only, as RUNTIME/PERIOD or RUNTIME/DEADLINE/PERIOD' -x
complete -c rtscope -n '__rtscope_at app start' -l nice -d 'Nice value, -20 to 19, policies other and batch only' -x
complete -c rtscope -n '__rtscope_at app start' -l reset-on-fork -d 'Ordinary policy for the threads and processes that it makes'
complete -c rtscope -n '__rtscope_at app start' -l cpus -d 'CPUs that it may use' -x
complete -c rtscope -n '__rtscope_at app start' -l shield -d 'These CPUs for the program alone until it ends'
complete -c rtscope -n '__rtscope_at app start' -l lock -d 'Locked memory, before its first instruction, of this program alone'
complete -c rtscope -n '__rtscope_at app start' -l io -d 'I/O class and level' -x
complete -c rtscope -n '__rtscope_at app start' -l user -d 'User that it becomes, if root types this' -x
complete -c rtscope -n '__rtscope_at app start' -l capabilities -d 'Capabilities that it gets beside those that the rest needs' -x
complete -c rtscope -n '__rtscope_at app start' -l target -s t -d 'Machine' -xa 'local ssh: virtual:jh7110 virtual:pc virtual:rpi3'
complete -c rtscope -n '__rtscope_at app start' -l json -d 'File or descriptor for what it has, as JSON, before it begins' -x
complete -c rtscope -n '__rtscope_at app start'
complete -c rtscope -n '__rtscope_at app unit' -l target -s t -d 'Running machine' -xa 'local ssh: virtual:jh7110 virtual:pc virtual:rpi3'
complete -c rtscope -n '__rtscope_at app unit' -l out -s o -d 'Unit to write' -rF
complete -c rtscope -n '__rtscope_at app unit' -F
complete -c rtscope -n '__rtscope_at app demo' -l target -s t -d 'Machine' -xa 'local ssh: virtual:jh7110 virtual:pc virtual:rpi3'
complete -c rtscope -n '__rtscope_at app demo' -l kernel -s k -d 'Kernel of a virtual board, by name or path of an image' -xa '(__fish_append , debian-6.12 debian-6.12-rt debian-6.17 debian-6.17-rt debian-6.1 debian-6.1-rt jh7110-6.1 jh7110-6.1-rt jh7110-6.1-rt-debug jh7110-6.1-rt-nolazy jh7110-6.12 jh7110-6.12-board jh7110-6.12-dynamic jh7110-6.12-rt jh7110-6.12-rt-board jh7110-7.3 jh7110-7.3-board jh7110-7.3-dynamic jh7110-7.3-rt jh7110-7.3-rt-board pc-6.12 pc-6.12-board pc-6.12-rt pc-6.12-rt-board pc-6.12-rtgroup rpi-6.12 rpi-6.12-board rpi-6.12-rt rpi-6.12-rt-board)'
complete -c rtscope -n '__rtscope_at app demo' -l cpu -d 'CPU of the threads' -x
complete -c rtscope -n '__rtscope_at app demo' -l chars -d 'A character for each ms that a thread ran, in order'
complete -c rtscope -n '__rtscope_at app demo' -l html -d 'HTML page to write' -rF
complete -c rtscope -n '__rtscope_at app demo' -l json -d 'Result as JSON'
complete -c rtscope -n '__rtscope_at app demo' -a 'preempt rr deadline classes throttle inversion pagefault malloc periodic states'
complete -c rtscope -n '__rtscope_at board list' -l json -d 'Result as JSON'
complete -c rtscope -n '__rtscope_at board show' -l json -d 'Result as JSON'
complete -c rtscope -n '__rtscope_at board show' -a 'jh7110 pc rpi3'
complete -c rtscope -n '__rtscope_at board build' -l kernel -s k -d 'Kernels, by name or path of an image' -xa '(__fish_append , debian-6.12 debian-6.12-rt debian-6.17 debian-6.17-rt debian-6.1 debian-6.1-rt jh7110-6.1 jh7110-6.1-rt jh7110-6.1-rt-debug jh7110-6.1-rt-nolazy jh7110-6.12 jh7110-6.12-board jh7110-6.12-dynamic jh7110-6.12-rt jh7110-6.12-rt-board jh7110-7.3 jh7110-7.3-board jh7110-7.3-dynamic jh7110-7.3-rt jh7110-7.3-rt-board pc-6.12 pc-6.12-board pc-6.12-rt pc-6.12-rt-board pc-6.12-rtgroup rpi-6.12 rpi-6.12-board rpi-6.12-rt rpi-6.12-rt-board)'
complete -c rtscope -n '__rtscope_at board build' -l lockfile -d 'Lock file with the exact packages to use' -rF
complete -c rtscope -n '__rtscope_at board build' -l save-lock -d 'Lock file to write with the packages used' -rF
complete -c rtscope -n '__rtscope_at board build' -l upgrade -d 'Newest packages of the archive, not the cached'
complete -c rtscope -n '__rtscope_at board build' -a 'jh7110 pc rpi3'
complete -c rtscope -n '__rtscope_at board export' -l out -s o -d 'Bundle to write' -rF
complete -c rtscope -n '__rtscope_at board export' -l kernel -s k -d 'Kernels, by name or path of an image' -xa '(__fish_append , debian-6.12 debian-6.12-rt debian-6.17 debian-6.17-rt debian-6.1 debian-6.1-rt jh7110-6.1 jh7110-6.1-rt jh7110-6.1-rt-debug jh7110-6.1-rt-nolazy jh7110-6.12 jh7110-6.12-board jh7110-6.12-dynamic jh7110-6.12-rt jh7110-6.12-rt-board jh7110-7.3 jh7110-7.3-board jh7110-7.3-dynamic jh7110-7.3-rt jh7110-7.3-rt-board pc-6.12 pc-6.12-board pc-6.12-rt pc-6.12-rt-board pc-6.12-rtgroup rpi-6.12 rpi-6.12-board rpi-6.12-rt rpi-6.12-rt-board)'
complete -c rtscope -n '__rtscope_at board export' -l campaign -d 'Campaign to include' -rF
complete -c rtscope -n '__rtscope_at board export' -a 'jh7110 pc rpi3'
complete -c rtscope -n '__rtscope_at board import' -F
complete -c rtscope -n '__rtscope_at board image' -l out -s o -d 'Image to write' -rF
complete -c rtscope -n '__rtscope_at board image' -l kernel -s k -d 'Kernel, by name or path of an image' -xa '(__fish_append , debian-6.12 debian-6.12-rt debian-6.17 debian-6.17-rt debian-6.1 debian-6.1-rt jh7110-6.1 jh7110-6.1-rt jh7110-6.1-rt-debug jh7110-6.1-rt-nolazy jh7110-6.12 jh7110-6.12-board jh7110-6.12-dynamic jh7110-6.12-rt jh7110-6.12-rt-board jh7110-7.3 jh7110-7.3-board jh7110-7.3-dynamic jh7110-7.3-rt jh7110-7.3-rt-board pc-6.12 pc-6.12-board pc-6.12-rt pc-6.12-rt-board pc-6.12-rtgroup rpi-6.12 rpi-6.12-board rpi-6.12-rt rpi-6.12-rt-board)'
complete -c rtscope -n '__rtscope_at board image' -l check -d 'Boot the image in QEMU, and measure for a second'
complete -c rtscope -n '__rtscope_at board image' -l force -d 'Replace an existing image'
complete -c rtscope -n '__rtscope_at board image' -l json -d 'Result as JSON'
complete -c rtscope -n '__rtscope_at board image' -a 'jh7110 pc rpi3'
complete -c rtscope -n '__rtscope_at board write' -l yes -d 'Consent to lose all that the disk holds'
complete -c rtscope -n '__rtscope_at board write' -l json -d 'Result as JSON'
complete -c rtscope -n '__rtscope_at board write' -F
complete -c rtscope -n '__rtscope_at board trace' -l run -d 'Run of a campaign' -x
complete -c rtscope -n '__rtscope_at board trace' -l worst -d 'Number of worst wake-ups to list' -x
complete -c rtscope -n '__rtscope_at board trace' -l cpu -d 'CPU to list, or all' -x
complete -c rtscope -n '__rtscope_at board trace' -l limit -d 'Steps to list of each path' -x
complete -c rtscope -n '__rtscope_at board trace' -l replay -d 'Replay of the run, which also records tasks'
complete -c rtscope -n '__rtscope_at board trace' -l window -d 'Virtual times in ns to record with --replay' -x
complete -c rtscope -n '__rtscope_at board trace' -l json -d 'Result as JSON'
complete -c rtscope -n '__rtscope_at board trace' -F
complete -c rtscope -n '__rtscope_at kernel list' -l json -d 'Result as JSON'
complete -c rtscope -n '__rtscope_at kernel show' -l json -d 'Result as JSON'
complete -c rtscope -n '__rtscope_at kernel show' -a 'jh7110-6.1 jh7110-6.1-rt jh7110-6.1-rt-debug jh7110-6.1-rt-nolazy jh7110-6.12 jh7110-6.12-board jh7110-6.12-dynamic jh7110-6.12-rt jh7110-6.12-rt-board jh7110-7.3 jh7110-7.3-board jh7110-7.3-dynamic jh7110-7.3-rt jh7110-7.3-rt-board pc-6.12 pc-6.12-board pc-6.12-rt pc-6.12-rt-board pc-6.12-rtgroup rpi-6.12 rpi-6.12-board rpi-6.12-rt rpi-6.12-rt-board'
complete -c rtscope -n '__rtscope_at kernel patches' -l json -d 'Result as JSON'
complete -c rtscope -n '__rtscope_at kernel patches' -a 'jh7110-6.1 jh7110-6.1-rt jh7110-6.1-rt-debug jh7110-6.1-rt-nolazy jh7110-6.12 jh7110-6.12-board jh7110-6.12-dynamic jh7110-6.12-rt jh7110-6.12-rt-board jh7110-7.3 jh7110-7.3-board jh7110-7.3-dynamic jh7110-7.3-rt jh7110-7.3-rt-board pc-6.12 pc-6.12-board pc-6.12-rt pc-6.12-rt-board pc-6.12-rtgroup rpi-6.12 rpi-6.12-board rpi-6.12-rt rpi-6.12-rt-board'
complete -c rtscope -n '__rtscope_at kernel config' -l diff -d 'Recipe to compare with, by name or path' -xa 'jh7110-6.1 jh7110-6.1-rt jh7110-6.1-rt-debug jh7110-6.1-rt-nolazy jh7110-6.12 jh7110-6.12-board jh7110-6.12-dynamic jh7110-6.12-rt jh7110-6.12-rt-board jh7110-7.3 jh7110-7.3-board jh7110-7.3-dynamic jh7110-7.3-rt jh7110-7.3-rt-board pc-6.12 pc-6.12-board pc-6.12-rt pc-6.12-rt-board pc-6.12-rtgroup rpi-6.12 rpi-6.12-board rpi-6.12-rt rpi-6.12-rt-board'
complete -c rtscope -n '__rtscope_at kernel config' -l json -d 'Result as JSON'
complete -c rtscope -n '__rtscope_at kernel config' -a 'jh7110-6.1 jh7110-6.1-rt jh7110-6.1-rt-debug jh7110-6.1-rt-nolazy jh7110-6.12 jh7110-6.12-board jh7110-6.12-dynamic jh7110-6.12-rt jh7110-6.12-rt-board jh7110-7.3 jh7110-7.3-board jh7110-7.3-dynamic jh7110-7.3-rt jh7110-7.3-rt-board pc-6.12 pc-6.12-board pc-6.12-rt pc-6.12-rt-board pc-6.12-rtgroup rpi-6.12 rpi-6.12-board rpi-6.12-rt rpi-6.12-rt-board'
complete -c rtscope -n '__rtscope_at kernel build' -l upgrade -d 'Newest source of the archive, not the cached one'
complete -c rtscope -n '__rtscope_at kernel build' -l json -d 'Result as JSON'
complete -c rtscope -n '__rtscope_at kernel build' -a 'jh7110-6.1 jh7110-6.1-rt jh7110-6.1-rt-debug jh7110-6.1-rt-nolazy jh7110-6.12 jh7110-6.12-board jh7110-6.12-dynamic jh7110-6.12-rt jh7110-6.12-rt-board jh7110-7.3 jh7110-7.3-board jh7110-7.3-dynamic jh7110-7.3-rt jh7110-7.3-rt-board pc-6.12 pc-6.12-board pc-6.12-rt pc-6.12-rt-board pc-6.12-rtgroup rpi-6.12 rpi-6.12-board rpi-6.12-rt rpi-6.12-rt-board'
complete -c rtscope -n '__rtscope_at kernel check' -l load -s l -d 'Loads, one run under each' -xa '(__fish_append , idle cpu os memory storage network packets interrupts timers switch pipe oom custom)'
complete -c rtscope -n '__rtscope_at kernel check' -l duration -s d -d 'Virtual time under each load' -x
complete -c rtscope -n '__rtscope_at kernel check' -l interval -d 'Interval between two wake-ups' -x
complete -c rtscope -n '__rtscope_at kernel check' -l settle -d 'Virtual time between boot and load' -x
complete -c rtscope -n '__rtscope_at kernel check' -l out -s o -d 'Directory to keep records and kernel logs in' -rF
complete -c rtscope -n '__rtscope_at kernel check' -l json -d 'Result as JSON'
complete -c rtscope -n '__rtscope_at kernel check' -a 'jh7110-6.1 jh7110-6.1-rt jh7110-6.1-rt-debug jh7110-6.1-rt-nolazy jh7110-6.12 jh7110-6.12-board jh7110-6.12-dynamic jh7110-6.12-rt jh7110-6.12-rt-board jh7110-7.3 jh7110-7.3-board jh7110-7.3-dynamic jh7110-7.3-rt jh7110-7.3-rt-board pc-6.12 pc-6.12-board pc-6.12-rt pc-6.12-rt-board pc-6.12-rtgroup rpi-6.12 rpi-6.12-board rpi-6.12-rt rpi-6.12-rt-board'
complete -c rtscope -n '__rtscope_at kernel package' -l out -s o -d 'Directory for the archive and the package' -rF
complete -c rtscope -n '__rtscope_at kernel package' -l json -d 'Result as JSON'
complete -c rtscope -n '__rtscope_at kernel package' -a 'jh7110-6.1 jh7110-6.1-rt jh7110-6.1-rt-debug jh7110-6.1-rt-nolazy jh7110-6.12 jh7110-6.12-board jh7110-6.12-dynamic jh7110-6.12-rt jh7110-6.12-rt-board jh7110-7.3 jh7110-7.3-board jh7110-7.3-dynamic jh7110-7.3-rt jh7110-7.3-rt-board pc-6.12 pc-6.12-board pc-6.12-rt pc-6.12-rt-board pc-6.12-rtgroup rpi-6.12 rpi-6.12-board rpi-6.12-rt rpi-6.12-rt-board'
complete -c rtscope -n '__rtscope_at kernel verify' -l target -s t -d 'Running machine' -xa 'local ssh:'
complete -c rtscope -n '__rtscope_at kernel verify' -l root -d 'File tree captured from a machine' -xa '(__fish_complete_directories)'
complete -c rtscope -n '__rtscope_at kernel verify' -l config -d 'Kernel configuration' -rF
complete -c rtscope -n '__rtscope_at kernel verify' -l image -d 'Kernel image built with IKCONFIG' -rF
complete -c rtscope -n '__rtscope_at kernel verify' -l against -d 'Intended kernel' -rF
complete -c rtscope -n '__rtscope_at kernel verify' -l ordinary -d 'Intended kernel without PREEMPT_RT'
complete -c rtscope -n '__rtscope_at kernel verify' -l fail-on -d 'Lowest severity that gives exit status 1' -xa 'low medium high fatal'
complete -c rtscope -n '__rtscope_at kernel verify' -l json -d 'Result as JSON'
complete -c rtscope -n '__rtscope_at kernel verify' -l quiet -s q -d 'The answer alone, in one line'
complete -c rtscope -n '__rtscope_at kernel verify' -l verbose -s v -d 'Everything on the terminal'
complete -c rtscope -n '__rtscope_at kernel verify' -a 'jh7110-6.1 jh7110-6.1-rt jh7110-6.1-rt-debug jh7110-6.1-rt-nolazy jh7110-6.12 jh7110-6.12-board jh7110-6.12-dynamic jh7110-6.12-rt jh7110-6.12-rt-board jh7110-7.3 jh7110-7.3-board jh7110-7.3-dynamic jh7110-7.3-rt jh7110-7.3-rt-board pc-6.12 pc-6.12-board pc-6.12-rt pc-6.12-rt-board pc-6.12-rtgroup rpi-6.12 rpi-6.12-board rpi-6.12-rt rpi-6.12-rt-board'
complete -c rtscope -n '__rtscope_at history index' -l index -d 'File of the index' -rF
complete -c rtscope -n '__rtscope_at history index' -l json -d 'Result as JSON'
complete -c rtscope -n '__rtscope_at history index' -xa '(__fish_complete_directories)'
complete -c rtscope -n '__rtscope_at history list' -l index -d 'File of the index' -rF
complete -c rtscope -n '__rtscope_at history list' -l machine -d 'Only this machine' -x
complete -c rtscope -n '__rtscope_at history list' -l kernel -s k -d 'Only this kernel or release' -xa '(__fish_append , debian-6.12 debian-6.12-rt debian-6.17 debian-6.17-rt debian-6.1 debian-6.1-rt jh7110-6.1 jh7110-6.1-rt jh7110-6.1-rt-debug jh7110-6.1-rt-nolazy jh7110-6.12 jh7110-6.12-board jh7110-6.12-dynamic jh7110-6.12-rt jh7110-6.12-rt-board jh7110-7.3 jh7110-7.3-board jh7110-7.3-dynamic jh7110-7.3-rt jh7110-7.3-rt-board pc-6.12 pc-6.12-board pc-6.12-rt pc-6.12-rt-board pc-6.12-rtgroup rpi-6.12 rpi-6.12-board rpi-6.12-rt rpi-6.12-rt-board)'
complete -c rtscope -n '__rtscope_at history list' -l load -s l -d 'Only these loads' -xa '(__fish_append , idle cpu os memory storage network packets interrupts timers switch pipe oom custom)'
complete -c rtscope -n '__rtscope_at history list' -l since -d 'Only runs from this day on' -x
complete -c rtscope -n '__rtscope_at history list' -l tag -d 'Only results with this tag' -x
complete -c rtscope -n '__rtscope_at history list' -l later-than -d 'Latency beyond which each run'\''s wake-ups are counted' -x
complete -c rtscope -n '__rtscope_at history list' -l limit -d 'Most runs to list, the newest first' -x
complete -c rtscope -n '__rtscope_at history list' -l json -d 'Result as JSON'
complete -c rtscope -n '__rtscope_at history show' -l index -d 'File of the index' -rF
complete -c rtscope -n '__rtscope_at history show' -l machine -d 'Only this machine' -x
complete -c rtscope -n '__rtscope_at history show' -l kernel -s k -d 'Only this kernel or release' -xa '(__fish_append , debian-6.12 debian-6.12-rt debian-6.17 debian-6.17-rt debian-6.1 debian-6.1-rt jh7110-6.1 jh7110-6.1-rt jh7110-6.1-rt-debug jh7110-6.1-rt-nolazy jh7110-6.12 jh7110-6.12-board jh7110-6.12-dynamic jh7110-6.12-rt jh7110-6.12-rt-board jh7110-7.3 jh7110-7.3-board jh7110-7.3-dynamic jh7110-7.3-rt jh7110-7.3-rt-board pc-6.12 pc-6.12-board pc-6.12-rt pc-6.12-rt-board pc-6.12-rtgroup rpi-6.12 rpi-6.12-board rpi-6.12-rt rpi-6.12-rt-board)'
complete -c rtscope -n '__rtscope_at history show' -l load -s l -d 'Only these loads' -xa '(__fish_append , idle cpu os memory storage network packets interrupts timers switch pipe oom custom)'
complete -c rtscope -n '__rtscope_at history show' -l since -d 'Only runs from this day on' -x
complete -c rtscope -n '__rtscope_at history show' -l tag -d 'Only results with this tag' -x
complete -c rtscope -n '__rtscope_at history show' -l nights -d 'Newest nights of a single series on the terminal' -x
complete -c rtscope -n '__rtscope_at history show' -l html -d 'HTML page to write, with all nights of each series' -rF
complete -c rtscope -n '__rtscope_at history show' -l json -d 'Result as JSON'
complete -c rtscope -n '__rtscope_at history check' -l latest -d 'Newest nights of each series to check together' -x
complete -c rtscope -n '__rtscope_at history check' -l baseline -d 'Nights to compare with' -x
complete -c rtscope -n '__rtscope_at history check' -l deadline -d 'Deadline that no new run may miss' -x
complete -c rtscope -n '__rtscope_at history check' -l machine -d 'Only this machine' -x
complete -c rtscope -n '__rtscope_at history check' -l load -s l -d 'Only these loads' -xa '(__fish_append , idle cpu os memory storage network packets interrupts timers switch pipe oom custom)'
complete -c rtscope -n '__rtscope_at history check' -l index -d 'File of the index' -rF
complete -c rtscope -n '__rtscope_at history check' -l junit -d 'JUnit XML to write, a case for each series' -rF
complete -c rtscope -n '__rtscope_at history check' -l json -d 'Result as JSON'
complete -c rtscope -n '__rtscope_at history check' -l quiet -s q -d 'The answer alone, in one line'
complete -c rtscope -n '__rtscope_at history check' -l verbose -s v -d 'Everything on the terminal'
complete -c rtscope -n '__rtscope_at history check' -F
complete -c rtscope -n '__rtscope_at history query' -l index -d 'File of the index' -rF
complete -c rtscope -n '__rtscope_at history query' -l limit -d 'Most rows of the answer' -x
complete -c rtscope -n '__rtscope_at history query' -l list -d 'List the queries with names, and the tables'
complete -c rtscope -n '__rtscope_at history query' -l datasette -d 'Metadata for Datasette to write' -rF
complete -c rtscope -n '__rtscope_at history query' -l csv -d 'Result as CSV'
complete -c rtscope -n '__rtscope_at history query' -l json -d 'Result as JSON'
complete -c rtscope -n '__rtscope_at history query' -a 'worst-per-night worst-per-series kernels causes caveats not-counted missed-deadlines temperature damaged'
complete -c rtscope -n '__rtscope_at history parquet' -l index -d 'File of the index' -rF
complete -c rtscope -n '__rtscope_at history parquet' -l json -d 'Result as JSON'
complete -c rtscope -n '__rtscope_at history parquet' -xa '(__fish_complete_directories)'
complete -c rtscope -n '__rtscope_at history thin' -l keep-nights -d 'Newest nights of each series that keep all files' -x
complete -c rtscope -n '__rtscope_at history thin' -l keep-worst -d 'Worst older runs of each series that keep all files' -x
complete -c rtscope -n '__rtscope_at history thin' -l budget -d 'Size that recordings, traces and samples may take in all' -x
complete -c rtscope -n '__rtscope_at history thin' -l dry-run -d 'Remove nothing'
complete -c rtscope -n '__rtscope_at history thin' -l json -d 'Result as JSON'
complete -c rtscope -n '__rtscope_at history thin' -xa '(__fish_complete_directories)'
complete -c rtscope -n '__rtscope_at history schedule' -l at -d 'Time of day when a night begins' -x
complete -c rtscope -n '__rtscope_at history schedule' -l jitter -d 'Longest random delay, so that boards of several timers do not begin at once' -x
complete -c rtscope -n '__rtscope_at history schedule' -l name -d 'Name of the units' -x
complete -c rtscope -n '__rtscope_at history schedule' -l keep-nights -d 'Newest nights that keep all files' -x
complete -c rtscope -n '__rtscope_at history schedule' -l keep-worst -d 'Worst older runs of each series that keep all files' -x
complete -c rtscope -n '__rtscope_at history schedule' -l budget -d 'Size that recordings, traces and samples may take in all' -x
complete -c rtscope -n '__rtscope_at history schedule' -l on-alarm -d 'Command that is started when a series is worse' -x
complete -c rtscope -n '__rtscope_at history schedule' -l user -d 'Units of your own systemd, for systemctl --user'
complete -c rtscope -n '__rtscope_at history schedule' -l out -s o -d 'Directory of the units' -rF
complete -c rtscope -n '__rtscope_at history schedule' -l json -d 'Result as JSON'
complete -c rtscope -n '__rtscope_at history schedule'
complete -c rtscope -n '__rtscope_at history tag' -l remove -d 'Take the tag away instead'
complete -c rtscope -n '__rtscope_at history tag' -xa '(__fish_complete_directories)'
