"""
A machine: its files, its kernel, its facts, and how rtscope reaches it.

    target/                     machines to measure: this one, or one over SSH
    audit/                      checks of the real-time setup, and their outcomes
    settings/                   settings that remedy failed checks: changed, restored
    tasks/                      threads: policy, CPUs, marks
    facts.py, facts.toml        facts of a machine: path, parser, meaning
    gather.py                   all facts in one round trip; a parser for each form
    reader.py                   the interface to read files of any machine
    filetree.py                 a reader of a directory: this root, or a captured tree
    snapshot.py                 files read at one time, and their kernel
    firmware.py                 what a Raspberry Pi's firmware answers
    guest.py, hypervisors.toml  virtual machine, container or neither
    kernelconfig.py             its configuration: found, parsed, repeated lines
    kernelidentity.py           the kernel of a machine, and parameters it did not take
    kernelimage.py              an image: architecture, banner, build ID, configuration
    capabilities.py             names of the capabilities of a thread
    cpulist.py                  lists of CPUs such as `0-3,5`
    redaction.py                removal of addresses, serial numbers, secrets
"""
