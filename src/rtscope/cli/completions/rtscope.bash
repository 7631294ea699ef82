# bash completion of rtscope. Made by tools/docs/generate.py from src/rtscope/cli: edit that, then type `make docs`.

# Sets kind, values, many and options of a verb, after the word in front.
_rtscope_known() {
    kind='' values='' many=''
    case "$1" in
        '') options='--help -h --version'
            [[ $2 == '' ]] && kind=values values='run cyclictest report compare test sweep bisect tasks audit explain import export pack doctor completion app board kernel history'
            ;;
        'app') options='--help -h'
            [[ $2 == '' ]] && kind=values values='check start unit demo'
            ;;
        'board') options='--help -h'
            [[ $2 == '' ]] && kind=values values='list show build export import image write trace'
            ;;
        'kernel') options='--help -h'
            [[ $2 == '' ]] && kind=values values='list show patches config build check package verify'
            ;;
        'history') options='--help -h'
            [[ $2 == '' ]] && kind=values values='index list show check query parquet thin schedule tag'
            ;;
        'run') options='--load -l --event --duration -d --interval --policy --priority -p --cpus --repetitions --warmup --settle --command --storage-dir --worst --explain --parts --keep-samples --target -t --kernel -k --deadline --claim --min-boots --require-identical --seed --seeds --guest-files --record --no-record --host-limit --qemu --append --lockfile --governor --hold-cpu-awake --rt-throttling --tuned --lab --tag --identical-to --jobs --bundle --reuse --out -o --resume --yes --json --quiet -q --verbose -v --help -h'
            case "$2" in
                --load|-l) kind=values values='idle cpu os memory storage network packets interrupts timers switch pipe oom custom' many=yes ;;
                --event) kind=values values='timer futex eventfd pipe signal mq sem cond pty serial udp raw xdp can uio poll hwlat timerlat list' ;;
                --duration|-d) kind=none ;;
                --interval) kind=none ;;
                --policy) kind=values values='fifo rr other batch idle deadline' many=yes ;;
                --priority|-p) kind=none ;;
                --cpus) kind=none ;;
                --repetitions) kind=none ;;
                --warmup) kind=none ;;
                --settle) kind=none ;;
                --command) kind=none ;;
                --storage-dir) kind=directories ;;
                --worst) kind=none ;;
                --target|-t) kind=values values='local ssh: virtual:jh7110 virtual:pc virtual:rpi3' ;;
                --kernel|-k) kind=values values='debian-6.12 debian-6.12-rt debian-6.17 debian-6.17-rt debian-6.1 debian-6.1-rt jh7110-6.1 jh7110-6.1-rt jh7110-6.1-rt-debug jh7110-6.1-rt-nolazy jh7110-6.12 jh7110-6.12-board jh7110-6.12-dynamic jh7110-6.12-rt jh7110-6.12-rt-board jh7110-7.3 jh7110-7.3-board jh7110-7.3-dynamic jh7110-7.3-rt jh7110-7.3-rt-board pc-6.12 pc-6.12-board pc-6.12-rt pc-6.12-rt-board pc-6.12-rtgroup rpi-6.12 rpi-6.12-board rpi-6.12-rt rpi-6.12-rt-board' many=yes ;;
                --deadline) kind=none ;;
                --claim) kind=none ;;
                --min-boots) kind=none ;;
                --seed) kind=none ;;
                --seeds) kind=none ;;
                --guest-files) kind=files ;;
                --host-limit) kind=none ;;
                --qemu) kind=files ;;
                --append) kind=none ;;
                --lockfile) kind=files ;;
                --governor) kind=none ;;
                --rt-throttling) kind=values values='keep off' ;;
                --tuned) kind=values values='safe fixed_frequency turbo energy_preference idle_states irq_affinity default_irq_affinity interrupt_threads workqueues busy_polling interrupt_coalescing deferred_polls threaded_polls preemption_model scaling_governor transparent_hugepages ksm numa_balancing locked_memory_moves rt_throttling rt_safety_net deadline_admission fair_server watchdog stack_tracer' many=yes ;;
                --lab) kind=files ;;
                --tag) kind=none ;;
                --identical-to) kind=files ;;
                --jobs) kind=none ;;
                --bundle) kind=files ;;
                --out|-o) kind=files ;;
                --resume) kind=directories ;;
                '') kind=files ;;
            esac
            ;;
        'cyclictest') options='--help -h'
            case "$2" in
                '') kind=none ;;
            esac
            ;;
        'report') options='--html --format --json --quiet -q --verbose -v --notes --summary --charts --deadline --claim --soft --min-boots --help -h'
            case "$2" in
                --html) kind=files ;;
                --format) kind=values values='table markdown csv json' ;;
                --summary) kind=files ;;
                --charts) kind=files ;;
                --deadline) kind=none ;;
                --claim) kind=none ;;
                --soft) kind=none ;;
                --min-boots) kind=none ;;
                '') kind=files ;;
            esac
            ;;
        'compare') options='--published --html --deadline --format --json --quiet -q --verbose -v --notes --help -h'
            case "$2" in
                --published) kind=values values='raspberry-pi-2018 scheduler-talk-raspberry-pi-3bplus scheduler-talk-x86-64 starfive-jh7110-devkit starfive-visionfive2' ;;
                --html) kind=files ;;
                --deadline) kind=none ;;
                --format) kind=values values='table markdown json' ;;
                '') kind=files ;;
            esac
            ;;
        'test') options='--build --root --files --package --environment --value --phase --stdin --directory --user --policy --priority -p --board --kernel -k --load -l --cpus --seed --append --qemu --lockfile --warmup --duration -d --cycles --settle --starts --period --response --latency --execution --instructions --missed --allocations --faults --blocking --inversions --quiet -q --verbose -v --jobs --save-lock --search --search-seed --search-thread --save --identical-to --no-worse-than --tolerance --junit --markdown --html --explain --no-explain --json --help -h'
            case "$2" in
                --build) kind=none ;;
                --root) kind=directories ;;
                --files) kind=none ;;
                --package) kind=none ;;
                --environment) kind=none ;;
                --value) kind=none ;;
                --phase) kind=none ;;
                --stdin) kind=files ;;
                --directory) kind=directories ;;
                --user) kind=none ;;
                --policy) kind=values values='fifo rr other batch idle deadline' many=yes ;;
                --priority|-p) kind=none ;;
                --board) kind=values values='jh7110 pc rpi3' many=yes ;;
                --kernel|-k) kind=values values='debian-6.12 debian-6.12-rt debian-6.17 debian-6.17-rt debian-6.1 debian-6.1-rt jh7110-6.1 jh7110-6.1-rt jh7110-6.1-rt-debug jh7110-6.1-rt-nolazy jh7110-6.12 jh7110-6.12-board jh7110-6.12-dynamic jh7110-6.12-rt jh7110-6.12-rt-board jh7110-7.3 jh7110-7.3-board jh7110-7.3-dynamic jh7110-7.3-rt jh7110-7.3-rt-board pc-6.12 pc-6.12-board pc-6.12-rt pc-6.12-rt-board pc-6.12-rtgroup rpi-6.12 rpi-6.12-board rpi-6.12-rt rpi-6.12-rt-board' many=yes ;;
                --load|-l) kind=values values='idle cpu os memory storage network packets interrupts timers switch pipe oom custom' many=yes ;;
                --cpus) kind=none ;;
                --seed) kind=none ;;
                --append) kind=none ;;
                --qemu) kind=files ;;
                --lockfile) kind=files ;;
                --warmup) kind=none ;;
                --duration|-d) kind=none ;;
                --cycles) kind=none ;;
                --settle) kind=none ;;
                --starts) kind=none ;;
                --period) kind=none ;;
                --response) kind=none ;;
                --latency) kind=none ;;
                --execution) kind=none ;;
                --instructions) kind=none ;;
                --missed) kind=none ;;
                --allocations) kind=none ;;
                --faults) kind=none ;;
                --blocking) kind=none ;;
                --inversions) kind=none ;;
                --jobs) kind=none ;;
                --save-lock) kind=files ;;
                --search) kind=none ;;
                --search-seed) kind=none ;;
                --search-thread) kind=none ;;
                --save) kind=files ;;
                --identical-to) kind=files ;;
                --no-worse-than) kind=files ;;
                --tolerance) kind=none ;;
                --junit) kind=files ;;
                --markdown) kind=files ;;
                --html) kind=files ;;
                '') kind=files ;;
            esac
            ;;
        'sweep') options='--target -t --kernel -k --seed --seeds --jobs --on --tls-ca --tls-cert --tls-key --only --dry-run --reuse --no-reuse --out -o --resume --yes --json --quiet -q --verbose -v --help -h'
            case "$2" in
                --target|-t) kind=values values='local ssh: virtual:jh7110 virtual:pc virtual:rpi3' ;;
                --kernel|-k) kind=values values='debian-6.12 debian-6.12-rt debian-6.17 debian-6.17-rt debian-6.1 debian-6.1-rt jh7110-6.1 jh7110-6.1-rt jh7110-6.1-rt-debug jh7110-6.1-rt-nolazy jh7110-6.12 jh7110-6.12-board jh7110-6.12-dynamic jh7110-6.12-rt jh7110-6.12-rt-board jh7110-7.3 jh7110-7.3-board jh7110-7.3-dynamic jh7110-7.3-rt jh7110-7.3-rt-board pc-6.12 pc-6.12-board pc-6.12-rt pc-6.12-rt-board pc-6.12-rtgroup rpi-6.12 rpi-6.12-board rpi-6.12-rt rpi-6.12-rt-board' many=yes ;;
                --seed) kind=none ;;
                --seeds) kind=none ;;
                --jobs) kind=none ;;
                --on) kind=none ;;
                --tls-ca) kind=files ;;
                --tls-cert) kind=files ;;
                --tls-key) kind=files ;;
                --only) kind=none ;;
                --out|-o) kind=files ;;
                --resume) kind=directories ;;
                '') kind=files ;;
            esac
            ;;
        'bisect') options='--good --bad --tree --test --patches --recipe --figure --margin --load -l --duration -d --interval --seeds --measured --jobs --dry-run --out -o --resume --yes --json --quiet -q --verbose -v --help -h'
            case "$2" in
                --good) kind=none ;;
                --bad) kind=none ;;
                --tree) kind=files ;;
                --test) kind=files ;;
                --patches) kind=none ;;
                --recipe) kind=none ;;
                --figure) kind=none ;;
                --margin) kind=none ;;
                --load|-l) kind=values values='idle cpu os memory storage network packets interrupts timers switch pipe oom custom' many=yes ;;
                --duration|-d) kind=none ;;
                --interval) kind=none ;;
                --seeds) kind=none ;;
                --measured) kind=files ;;
                --jobs) kind=none ;;
                --out|-o) kind=files ;;
                --resume) kind=directories ;;
            esac
            ;;
        'tasks') options='--target -t --rt --cpu --pid --sort --share --watch --changes --count --shield --json --verbose -v --help -h'
            case "$2" in
                --target|-t) kind=values values='local ssh:' ;;
                --cpu) kind=none ;;
                --pid) kind=none ;;
                --sort) kind=values values='process priority share time switches faults cpu name' ;;
                --share) kind=none ;;
                --watch) kind=none ;;
                --count) kind=none ;;
                --shield) kind=none ;;
                '') kind=none ;;
            esac
            ;;
        'audit') options='--profile --cpus --target -t --kernel -k --append --config --root --observe --capture --unit --user --apply --dry-run --restore --fail-on --json --quiet -q --verbose -v --help -h'
            case "$2" in
                --profile) kind=values values='control polling audio host guest' ;;
                --cpus) kind=none ;;
                --target|-t) kind=values values='local ssh: virtual:jh7110 virtual:pc virtual:rpi3' ;;
                --kernel|-k) kind=values values='debian-6.12 debian-6.12-rt debian-6.17 debian-6.17-rt debian-6.1 debian-6.1-rt jh7110-6.1 jh7110-6.1-rt jh7110-6.1-rt-debug jh7110-6.1-rt-nolazy jh7110-6.12 jh7110-6.12-board jh7110-6.12-dynamic jh7110-6.12-rt jh7110-6.12-rt-board jh7110-7.3 jh7110-7.3-board jh7110-7.3-dynamic jh7110-7.3-rt jh7110-7.3-rt-board pc-6.12 pc-6.12-board pc-6.12-rt pc-6.12-rt-board pc-6.12-rtgroup rpi-6.12 rpi-6.12-board rpi-6.12-rt rpi-6.12-rt-board' many=yes ;;
                --append) kind=none ;;
                --config) kind=files ;;
                --root) kind=directories ;;
                --observe) kind=none ;;
                --capture) kind=files ;;
                --unit) kind=none ;;
                --apply) kind=values values='safe fixed_frequency turbo energy_preference idle_states irq_affinity default_irq_affinity interrupt_threads workqueues busy_polling interrupt_coalescing deferred_polls threaded_polls preemption_model scaling_governor transparent_hugepages ksm numa_balancing locked_memory_moves rt_throttling rt_safety_net deadline_admission fair_server watchdog stack_tracer' many=yes ;;
                --fail-on) kind=values values='low medium high fatal' ;;
            esac
            ;;
        'explain') options='--run --trace --thread --at --worst --bound --json --quiet -q --verbose -v --html --perfetto --ctf --help -h'
            case "$2" in
                --run) kind=none ;;
                --trace) kind=files ;;
                --thread) kind=none ;;
                --at) kind=none ;;
                --worst) kind=none ;;
                --html) kind=files ;;
                --perfetto) kind=files ;;
                --ctf) kind=files ;;
                '') kind=files ;;
            esac
            ;;
        'import') options='--out -o --load -l --interval --duration -d --policy --priority -p --machine --kernel -k --preempt-rt --unit --column --time-column --count-column --help -h'
            case "$2" in
                --out|-o) kind=files ;;
                --load|-l) kind=values values='idle cpu os memory storage network packets interrupts timers switch pipe oom custom' many=yes ;;
                --interval) kind=none ;;
                --duration|-d) kind=none ;;
                --policy) kind=values values='fifo rr other batch idle deadline' many=yes ;;
                --priority|-p) kind=none ;;
                --machine) kind=none ;;
                --kernel|-k) kind=values values='debian-6.12 debian-6.12-rt debian-6.17 debian-6.17-rt debian-6.1 debian-6.1-rt jh7110-6.1 jh7110-6.1-rt jh7110-6.1-rt-debug jh7110-6.1-rt-nolazy jh7110-6.12 jh7110-6.12-board jh7110-6.12-dynamic jh7110-6.12-rt jh7110-6.12-rt-board jh7110-7.3 jh7110-7.3-board jh7110-7.3-dynamic jh7110-7.3-rt jh7110-7.3-rt-board pc-6.12 pc-6.12-board pc-6.12-rt pc-6.12-rt-board pc-6.12-rtgroup rpi-6.12 rpi-6.12-board rpi-6.12-rt rpi-6.12-rt-board' many=yes ;;
                --preempt-rt) kind=values values='yes no' ;;
                --unit) kind=values values='us ns ms s' ;;
                --column) kind=none ;;
                --time-column) kind=none ;;
                --count-column) kind=none ;;
                '') kind=none ;;
            esac
            ;;
        'export') options='--to --out -o --deadline --origin --help -h'
            case "$2" in
                --to) kind=values values='cyclictest-text cyclictest-json jitterdebugger-json rtla-text junit ktap lava kcidb openmetrics csv samples-csv otava-csv influx benchmark-action bencher' ;;
                --out|-o) kind=files ;;
                --deadline) kind=none ;;
                --origin) kind=none ;;
                '') kind=files ;;
            esac
            ;;
        'pack') options='--out -o --max-size --redact --help -h'
            case "$2" in
                --out|-o) kind=files ;;
                --max-size) kind=none ;;
                '') kind=directories ;;
            esac
            ;;
        'doctor') options='--target -t --json --quiet -q --verbose -v --help -h'
            case "$2" in
                --target|-t) kind=values values='local ssh:' ;;
            esac
            ;;
        'completion') options='--help -h'
            case "$2" in
                '') kind=values values='bash zsh fish' ;;
            esac
            ;;
        'app check') options='--target -t --kernel -k --append --seed --duration -d --settle --thread --period --response --light --fail-on --html --perfetto --junit --debuginfod --quiet -q --verbose -v --json --help -h'
            case "$2" in
                --target|-t) kind=values values='local ssh: virtual:jh7110 virtual:pc virtual:rpi3' ;;
                --kernel|-k) kind=values values='debian-6.12 debian-6.12-rt debian-6.17 debian-6.17-rt debian-6.1 debian-6.1-rt jh7110-6.1 jh7110-6.1-rt jh7110-6.1-rt-debug jh7110-6.1-rt-nolazy jh7110-6.12 jh7110-6.12-board jh7110-6.12-dynamic jh7110-6.12-rt jh7110-6.12-rt-board jh7110-7.3 jh7110-7.3-board jh7110-7.3-dynamic jh7110-7.3-rt jh7110-7.3-rt-board pc-6.12 pc-6.12-board pc-6.12-rt pc-6.12-rt-board pc-6.12-rtgroup rpi-6.12 rpi-6.12-board rpi-6.12-rt rpi-6.12-rt-board' many=yes ;;
                --append) kind=none ;;
                --seed) kind=none ;;
                --duration|-d) kind=none ;;
                --settle) kind=none ;;
                --thread) kind=none ;;
                --period) kind=none ;;
                --response) kind=none ;;
                --fail-on) kind=values values='high medium low never' ;;
                --html) kind=files ;;
                --perfetto) kind=files ;;
                --junit) kind=files ;;
                --debuginfod) kind=none ;;
                '') kind=files ;;
            esac
            ;;
        'app start') options='--policy --priority -p --runtime --nice --reset-on-fork --cpus --shield --lock --io --user --capabilities --target -t --json --help -h'
            case "$2" in
                --policy) kind=values values='fifo rr other batch idle deadline' many=yes ;;
                --priority|-p) kind=none ;;
                --runtime) kind=none ;;
                --nice) kind=none ;;
                --cpus) kind=none ;;
                --io) kind=none ;;
                --user) kind=none ;;
                --capabilities) kind=none ;;
                --target|-t) kind=values values='local ssh: virtual:jh7110 virtual:pc virtual:rpi3' ;;
                --json) kind=none ;;
                '') kind=none ;;
            esac
            ;;
        'app unit') options='--target -t --out -o --help -h'
            case "$2" in
                --target|-t) kind=values values='local ssh: virtual:jh7110 virtual:pc virtual:rpi3' ;;
                --out|-o) kind=files ;;
                '') kind=files ;;
            esac
            ;;
        'app demo') options='--target -t --kernel -k --cpu --chars --html --json --help -h'
            case "$2" in
                --target|-t) kind=values values='local ssh: virtual:jh7110 virtual:pc virtual:rpi3' ;;
                --kernel|-k) kind=values values='debian-6.12 debian-6.12-rt debian-6.17 debian-6.17-rt debian-6.1 debian-6.1-rt jh7110-6.1 jh7110-6.1-rt jh7110-6.1-rt-debug jh7110-6.1-rt-nolazy jh7110-6.12 jh7110-6.12-board jh7110-6.12-dynamic jh7110-6.12-rt jh7110-6.12-rt-board jh7110-7.3 jh7110-7.3-board jh7110-7.3-dynamic jh7110-7.3-rt jh7110-7.3-rt-board pc-6.12 pc-6.12-board pc-6.12-rt pc-6.12-rt-board pc-6.12-rtgroup rpi-6.12 rpi-6.12-board rpi-6.12-rt rpi-6.12-rt-board' many=yes ;;
                --cpu) kind=none ;;
                --html) kind=files ;;
                '') kind=values values='preempt rr deadline classes throttle inversion pagefault malloc periodic states' ;;
            esac
            ;;
        'board list') options='--json --help -h'
            case "$2" in
            esac
            ;;
        'board show') options='--json --help -h'
            case "$2" in
                '') kind=values values='jh7110 pc rpi3' ;;
            esac
            ;;
        'board build') options='--kernel -k --lockfile --save-lock --upgrade --help -h'
            case "$2" in
                --kernel|-k) kind=values values='debian-6.12 debian-6.12-rt debian-6.17 debian-6.17-rt debian-6.1 debian-6.1-rt jh7110-6.1 jh7110-6.1-rt jh7110-6.1-rt-debug jh7110-6.1-rt-nolazy jh7110-6.12 jh7110-6.12-board jh7110-6.12-dynamic jh7110-6.12-rt jh7110-6.12-rt-board jh7110-7.3 jh7110-7.3-board jh7110-7.3-dynamic jh7110-7.3-rt jh7110-7.3-rt-board pc-6.12 pc-6.12-board pc-6.12-rt pc-6.12-rt-board pc-6.12-rtgroup rpi-6.12 rpi-6.12-board rpi-6.12-rt rpi-6.12-rt-board' many=yes ;;
                --lockfile) kind=files ;;
                --save-lock) kind=files ;;
                '') kind=values values='jh7110 pc rpi3' ;;
            esac
            ;;
        'board export') options='--out -o --kernel -k --campaign --help -h'
            case "$2" in
                --out|-o) kind=files ;;
                --kernel|-k) kind=values values='debian-6.12 debian-6.12-rt debian-6.17 debian-6.17-rt debian-6.1 debian-6.1-rt jh7110-6.1 jh7110-6.1-rt jh7110-6.1-rt-debug jh7110-6.1-rt-nolazy jh7110-6.12 jh7110-6.12-board jh7110-6.12-dynamic jh7110-6.12-rt jh7110-6.12-rt-board jh7110-7.3 jh7110-7.3-board jh7110-7.3-dynamic jh7110-7.3-rt jh7110-7.3-rt-board pc-6.12 pc-6.12-board pc-6.12-rt pc-6.12-rt-board pc-6.12-rtgroup rpi-6.12 rpi-6.12-board rpi-6.12-rt rpi-6.12-rt-board' many=yes ;;
                --campaign) kind=files ;;
                '') kind=values values='jh7110 pc rpi3' ;;
            esac
            ;;
        'board import') options='--help -h'
            case "$2" in
                '') kind=files ;;
            esac
            ;;
        'board image') options='--out -o --kernel -k --check --force --json --help -h'
            case "$2" in
                --out|-o) kind=files ;;
                --kernel|-k) kind=values values='debian-6.12 debian-6.12-rt debian-6.17 debian-6.17-rt debian-6.1 debian-6.1-rt jh7110-6.1 jh7110-6.1-rt jh7110-6.1-rt-debug jh7110-6.1-rt-nolazy jh7110-6.12 jh7110-6.12-board jh7110-6.12-dynamic jh7110-6.12-rt jh7110-6.12-rt-board jh7110-7.3 jh7110-7.3-board jh7110-7.3-dynamic jh7110-7.3-rt jh7110-7.3-rt-board pc-6.12 pc-6.12-board pc-6.12-rt pc-6.12-rt-board pc-6.12-rtgroup rpi-6.12 rpi-6.12-board rpi-6.12-rt rpi-6.12-rt-board' many=yes ;;
                '') kind=values values='jh7110 pc rpi3' ;;
            esac
            ;;
        'board write') options='--yes --json --help -h'
            case "$2" in
                '') kind=files ;;
            esac
            ;;
        'board trace') options='--run --worst --cpu --limit --replay --window --json --help -h'
            case "$2" in
                --run) kind=none ;;
                --worst) kind=none ;;
                --cpu) kind=none ;;
                --limit) kind=none ;;
                --window) kind=none ;;
                '') kind=files ;;
            esac
            ;;
        'kernel list') options='--json --help -h'
            case "$2" in
            esac
            ;;
        'kernel show') options='--json --help -h'
            case "$2" in
                '') kind=values values='jh7110-6.1 jh7110-6.1-rt jh7110-6.1-rt-debug jh7110-6.1-rt-nolazy jh7110-6.12 jh7110-6.12-board jh7110-6.12-dynamic jh7110-6.12-rt jh7110-6.12-rt-board jh7110-7.3 jh7110-7.3-board jh7110-7.3-dynamic jh7110-7.3-rt jh7110-7.3-rt-board pc-6.12 pc-6.12-board pc-6.12-rt pc-6.12-rt-board pc-6.12-rtgroup rpi-6.12 rpi-6.12-board rpi-6.12-rt rpi-6.12-rt-board' ;;
            esac
            ;;
        'kernel patches') options='--json --help -h'
            case "$2" in
                '') kind=values values='jh7110-6.1 jh7110-6.1-rt jh7110-6.1-rt-debug jh7110-6.1-rt-nolazy jh7110-6.12 jh7110-6.12-board jh7110-6.12-dynamic jh7110-6.12-rt jh7110-6.12-rt-board jh7110-7.3 jh7110-7.3-board jh7110-7.3-dynamic jh7110-7.3-rt jh7110-7.3-rt-board pc-6.12 pc-6.12-board pc-6.12-rt pc-6.12-rt-board pc-6.12-rtgroup rpi-6.12 rpi-6.12-board rpi-6.12-rt rpi-6.12-rt-board' ;;
            esac
            ;;
        'kernel config') options='--diff --json --help -h'
            case "$2" in
                --diff) kind=values values='jh7110-6.1 jh7110-6.1-rt jh7110-6.1-rt-debug jh7110-6.1-rt-nolazy jh7110-6.12 jh7110-6.12-board jh7110-6.12-dynamic jh7110-6.12-rt jh7110-6.12-rt-board jh7110-7.3 jh7110-7.3-board jh7110-7.3-dynamic jh7110-7.3-rt jh7110-7.3-rt-board pc-6.12 pc-6.12-board pc-6.12-rt pc-6.12-rt-board pc-6.12-rtgroup rpi-6.12 rpi-6.12-board rpi-6.12-rt rpi-6.12-rt-board' ;;
                '') kind=values values='jh7110-6.1 jh7110-6.1-rt jh7110-6.1-rt-debug jh7110-6.1-rt-nolazy jh7110-6.12 jh7110-6.12-board jh7110-6.12-dynamic jh7110-6.12-rt jh7110-6.12-rt-board jh7110-7.3 jh7110-7.3-board jh7110-7.3-dynamic jh7110-7.3-rt jh7110-7.3-rt-board pc-6.12 pc-6.12-board pc-6.12-rt pc-6.12-rt-board pc-6.12-rtgroup rpi-6.12 rpi-6.12-board rpi-6.12-rt rpi-6.12-rt-board' ;;
            esac
            ;;
        'kernel build') options='--upgrade --json --help -h'
            case "$2" in
                '') kind=values values='jh7110-6.1 jh7110-6.1-rt jh7110-6.1-rt-debug jh7110-6.1-rt-nolazy jh7110-6.12 jh7110-6.12-board jh7110-6.12-dynamic jh7110-6.12-rt jh7110-6.12-rt-board jh7110-7.3 jh7110-7.3-board jh7110-7.3-dynamic jh7110-7.3-rt jh7110-7.3-rt-board pc-6.12 pc-6.12-board pc-6.12-rt pc-6.12-rt-board pc-6.12-rtgroup rpi-6.12 rpi-6.12-board rpi-6.12-rt rpi-6.12-rt-board' ;;
            esac
            ;;
        'kernel check') options='--load -l --duration -d --interval --settle --out -o --json --help -h'
            case "$2" in
                --load|-l) kind=values values='idle cpu os memory storage network packets interrupts timers switch pipe oom custom' many=yes ;;
                --duration|-d) kind=none ;;
                --interval) kind=none ;;
                --settle) kind=none ;;
                --out|-o) kind=files ;;
                '') kind=values values='jh7110-6.1 jh7110-6.1-rt jh7110-6.1-rt-debug jh7110-6.1-rt-nolazy jh7110-6.12 jh7110-6.12-board jh7110-6.12-dynamic jh7110-6.12-rt jh7110-6.12-rt-board jh7110-7.3 jh7110-7.3-board jh7110-7.3-dynamic jh7110-7.3-rt jh7110-7.3-rt-board pc-6.12 pc-6.12-board pc-6.12-rt pc-6.12-rt-board pc-6.12-rtgroup rpi-6.12 rpi-6.12-board rpi-6.12-rt rpi-6.12-rt-board' ;;
            esac
            ;;
        'kernel package') options='--out -o --json --help -h'
            case "$2" in
                --out|-o) kind=files ;;
                '') kind=values values='jh7110-6.1 jh7110-6.1-rt jh7110-6.1-rt-debug jh7110-6.1-rt-nolazy jh7110-6.12 jh7110-6.12-board jh7110-6.12-dynamic jh7110-6.12-rt jh7110-6.12-rt-board jh7110-7.3 jh7110-7.3-board jh7110-7.3-dynamic jh7110-7.3-rt jh7110-7.3-rt-board pc-6.12 pc-6.12-board pc-6.12-rt pc-6.12-rt-board pc-6.12-rtgroup rpi-6.12 rpi-6.12-board rpi-6.12-rt rpi-6.12-rt-board' ;;
            esac
            ;;
        'kernel verify') options='--target -t --root --config --image --against --ordinary --fail-on --json --quiet -q --verbose -v --help -h'
            case "$2" in
                --target|-t) kind=values values='local ssh:' ;;
                --root) kind=directories ;;
                --config) kind=files ;;
                --image) kind=files ;;
                --against) kind=files ;;
                --fail-on) kind=values values='low medium high fatal' ;;
                '') kind=values values='jh7110-6.1 jh7110-6.1-rt jh7110-6.1-rt-debug jh7110-6.1-rt-nolazy jh7110-6.12 jh7110-6.12-board jh7110-6.12-dynamic jh7110-6.12-rt jh7110-6.12-rt-board jh7110-7.3 jh7110-7.3-board jh7110-7.3-dynamic jh7110-7.3-rt jh7110-7.3-rt-board pc-6.12 pc-6.12-board pc-6.12-rt pc-6.12-rt-board pc-6.12-rtgroup rpi-6.12 rpi-6.12-board rpi-6.12-rt rpi-6.12-rt-board' ;;
            esac
            ;;
        'history index') options='--index --json --help -h'
            case "$2" in
                --index) kind=files ;;
                '') kind=directories ;;
            esac
            ;;
        'history list') options='--index --machine --kernel -k --load -l --since --tag --later-than --limit --json --help -h'
            case "$2" in
                --index) kind=files ;;
                --machine) kind=none ;;
                --kernel|-k) kind=values values='debian-6.12 debian-6.12-rt debian-6.17 debian-6.17-rt debian-6.1 debian-6.1-rt jh7110-6.1 jh7110-6.1-rt jh7110-6.1-rt-debug jh7110-6.1-rt-nolazy jh7110-6.12 jh7110-6.12-board jh7110-6.12-dynamic jh7110-6.12-rt jh7110-6.12-rt-board jh7110-7.3 jh7110-7.3-board jh7110-7.3-dynamic jh7110-7.3-rt jh7110-7.3-rt-board pc-6.12 pc-6.12-board pc-6.12-rt pc-6.12-rt-board pc-6.12-rtgroup rpi-6.12 rpi-6.12-board rpi-6.12-rt rpi-6.12-rt-board' many=yes ;;
                --load|-l) kind=values values='idle cpu os memory storage network packets interrupts timers switch pipe oom custom' many=yes ;;
                --since) kind=none ;;
                --tag) kind=none ;;
                --later-than) kind=none ;;
                --limit) kind=none ;;
            esac
            ;;
        'history show') options='--index --machine --kernel -k --load -l --since --tag --nights --html --json --help -h'
            case "$2" in
                --index) kind=files ;;
                --machine) kind=none ;;
                --kernel|-k) kind=values values='debian-6.12 debian-6.12-rt debian-6.17 debian-6.17-rt debian-6.1 debian-6.1-rt jh7110-6.1 jh7110-6.1-rt jh7110-6.1-rt-debug jh7110-6.1-rt-nolazy jh7110-6.12 jh7110-6.12-board jh7110-6.12-dynamic jh7110-6.12-rt jh7110-6.12-rt-board jh7110-7.3 jh7110-7.3-board jh7110-7.3-dynamic jh7110-7.3-rt jh7110-7.3-rt-board pc-6.12 pc-6.12-board pc-6.12-rt pc-6.12-rt-board pc-6.12-rtgroup rpi-6.12 rpi-6.12-board rpi-6.12-rt rpi-6.12-rt-board' many=yes ;;
                --load|-l) kind=values values='idle cpu os memory storage network packets interrupts timers switch pipe oom custom' many=yes ;;
                --since) kind=none ;;
                --tag) kind=none ;;
                --nights) kind=none ;;
                --html) kind=files ;;
            esac
            ;;
        'history check') options='--latest --baseline --deadline --machine --load -l --index --junit --json --quiet -q --verbose -v --help -h'
            case "$2" in
                --latest) kind=none ;;
                --baseline) kind=none ;;
                --deadline) kind=none ;;
                --machine) kind=none ;;
                --load|-l) kind=values values='idle cpu os memory storage network packets interrupts timers switch pipe oom custom' many=yes ;;
                --index) kind=files ;;
                --junit) kind=files ;;
                '') kind=files ;;
            esac
            ;;
        'history query') options='--index --limit --list --datasette --csv --json --help -h'
            case "$2" in
                --index) kind=files ;;
                --limit) kind=none ;;
                --datasette) kind=files ;;
                '') kind=values values='worst-per-night worst-per-series kernels causes caveats not-counted missed-deadlines temperature damaged' ;;
            esac
            ;;
        'history parquet') options='--index --json --help -h'
            case "$2" in
                --index) kind=files ;;
                '') kind=directories ;;
            esac
            ;;
        'history thin') options='--keep-nights --keep-worst --budget --dry-run --json --help -h'
            case "$2" in
                --keep-nights) kind=none ;;
                --keep-worst) kind=none ;;
                --budget) kind=none ;;
                '') kind=directories ;;
            esac
            ;;
        'history schedule') options='--at --jitter --name --keep-nights --keep-worst --budget --on-alarm --user --out -o --json --help -h'
            case "$2" in
                --at) kind=none ;;
                --jitter) kind=none ;;
                --name) kind=none ;;
                --keep-nights) kind=none ;;
                --keep-worst) kind=none ;;
                --budget) kind=none ;;
                --on-alarm) kind=none ;;
                --out|-o) kind=files ;;
                '') kind=none ;;
            esac
            ;;
        'history tag') options='--remove --help -h'
            case "$2" in
                '') kind=directories ;;
            esac
            ;;
    esac
}

_rtscope() {
    local line=${COMP_LINE:0:COMP_POINT} cur prev before='' verb='' word values=''
    local kind='' many='' options='' found
    local -a words
    read -ra words <<< "$line"
    # Of the line, not COMP_WORDS: that is cut at each ':' and '='.
    [[ $line == *[[:space:]] ]] && words+=('')
    cur=${words[${#words[@]}-1]}
    prev=${words[${#words[@]}-2]}
    for word in "${words[@]:1:${#words[@]}-2}"; do
        [[ $word == -* || $verb == *' '* ]] && continue
        case "$verb" in
            '') verb=$word ;;
            app|board|kernel|history) verb="$verb $word" ;;
        esac
    done
    if [[ $cur == --*=* ]]; then
        prev=${cur%%=*}
        before="$prev="
        cur=${cur#*=}
    fi
    _rtscope_known "$verb" "$prev"
    if [[ -z $kind ]]; then
        if [[ $cur == -* ]]; then
            mapfile -t COMPREPLY < <(compgen -W "$options" -- "$cur")
            return
        fi
        _rtscope_known "$verb" ''
    fi
    if [[ $many && $cur == *,* ]]; then
        before="$before${cur%,*},"
        cur=${cur##*,}
    fi
    case "$kind" in
        values) mapfile -t found < <(compgen -W "$values" -- "$cur") ;;
        files) mapfile -t found < <(compgen -f -- "$cur") ;;
        directories) mapfile -t found < <(compgen -d -- "$cur") ;;
        *) return ;;
    esac
    [[ $kind != values && -z $before ]] && compopt -o filenames 2> /dev/null
    ((${#found[@]} == 1)) && [[ ${found[0]} == *: ]] && compopt -o nospace 2> /dev/null
    # bash replaces only what follows the last character at which it cuts words.
    [[ $COMP_WORDBREAKS == *=* ]] && before=${before##*=}
    found=("${found[@]/#/$before}")
    if [[ $cur == *:* && $COMP_WORDBREAKS == *:* ]]; then
        found=("${found[@]#"${cur%"${cur##*:}"}"}")
    fi
    COMPREPLY=("${found[@]}")
}

complete -F _rtscope rtscope
