"""Outputs in which something is unknown, none or zero, as people have them."""

NANOSECONDS = """\
# /dev/cpu_dma_latency set to 0us
policy: fifo: loadavg: 0.10 0.05 0.01 1/300 4100

T: 0 ( 4090) P:99 I:1000 C: 100000 Min:      871 Act:   1303 Avg:   1190 Max:      17650
"""

NOTHING_FOUND = """\
hwlatdetect:  test duration 3600 seconds
   detector: tracer
   parameters:
        Latency threshold: 10us
        Sample window:     1000000us
        Sample width:      500000us
     Non-sampling period:  500000us
        Output File:       None

Starting test
test finished
Max Latency: Below threshold
Samples recorded: 0
Samples exceeding threshold: 0
"""

NO_SUMMARY = """\
# RTLA timerlat histogram
# Time unit is microseconds (us)
# Duration:   0 00:01:00
Index   IRQ-000   Thr-000   IRQ-001   Thr-001
0           100         0       200         0
1            50        10        50        20
2             5       120         3       200
5             0        20         0        30
9             0         5         0         3
over:         0         0         0         0
"""

LEFT_OUT = """\
policy: fifo: loadavg: 0.08 0.03 0.01 1/215 12345

T: 0 (12345) P:99 I:1000 C: 300000 Min:      1 Act:    1 Avg:    1 Max:       5
T: 1 (12346) P:99 I:1000 C: 300000 Min:      1 Act:    2 Avg:    1 Max:       4
...
T:17 (12362) P:99 I:1000 C: 300000 Min:      1 Act:    1 Avg:    1 Max:       7
"""

XENOMAI_PLAIN = """\
== Sampling period: 200 us
== Test mode: periodic user-mode task
== All results in microseconds
warming up...
RTT|  00:00:01  (periodic user-mode task, 200 us period, priority 99)
RTH|----lat min|----lat avg|----lat max|-overrun|---msw|---lat best|--lat worst
RTD|      0.512|      1.204|      7.305|       0|     0|      0.512|      7.305
RTD|      0.498|      1.198|      9.871|       2|     0|      0.498|      9.871
---|-----------|-----------|-----------|--------|------|-------------------------
RTS|      0.498|      1.201|      9.871|       2|     0|    00:00:02/00:00:02
"""

LATMUS = """\
warming up on CPU1 (not isolated)...
RTT|  00:00:01  (user, 1000 us period, priority 98, CPU1-noisol)
RTH|----lat min|----lat avg|----lat max|-overrun|---msw|---lat best|--lat worst
RTD|      1.211|      1.325|      2.476|       0|     0|      1.211|      2.476
RTD|      1.182|      1.302|      3.899|       0|     0|      1.182|      3.899
---|-----------|-----------|-----------|--------|------|-------------------------
RTS|      1.182|      1.313|      3.899|       0|     0|    00:00:02/00:00:02
"""

IDLE = """\
# Histogram
000006 005000
000007 090000
000008 004990
000015 000010
# Min Latencies: 00006
# Avg Latencies: 00007
# Max Latencies: 00015
# Histogram Overflows: 00000
"""

STRESS = """\
# Histogram
000009 040000
000012 055000
000050 004900
000279 000100
# Min Latencies: 00009
# Avg Latencies: 00012
# Max Latencies: 00279
# Histogram Overflows: 00000
"""

ALL_BEYOND = """\
# /dev/cpu_dma_latency set to 0us
# Histogram
# Min Latencies: 13278
# Avg Latencies: 23697
# Max Latencies: 278611
# Histogram Overflows: 01000
# Histogram Overflow at cycle number:
# Thread 0: 00000 00001 00002 # 00997 others
"""
