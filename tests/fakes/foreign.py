"""Outputs of other tools, written after their descriptions."""

TIMERLAT = """\
# RTLA timerlat histogram
# Time unit is microseconds (us)
# Duration:   0 00:10:00
Index   IRQ-000   Thr-000   Usr-000   IRQ-002   Thr-002   Usr-002
0          5990         0         0      5000         0         0
3            10      5000         0      1000      6000         0
7             0       990      5995         0         0      5999
over:         0        10         5         0         0         1
count:     6000      6000      6000      6000      6000      6000
min:          0         3         7         0         3         7
avg:          0         3         7         0         3         7
max:          3        57        61         3         3       300
ALL:        IRQ       Thr       Usr
count:    12000     12000     12000
min:          0         3         7
avg:          0         3         7
max:          3        57       300
"""

TIMERLAT_TOP = """\
    Timer Latency
  0 00:00:04   |    IRQ Timer Latency (us)    |    Thread Timer Latency (us)
CPU COUNT    |    cur    min    avg    max |    cur    min    avg    max
  0 #3000    |    3    0    1    12 |    9    2    6    20
    Timer Latency
  0 00:00:05   |    IRQ Timer Latency (us)    |    Thread Timer Latency (us)
CPU COUNT    |    cur    min    avg    max |    cur    min    avg    max
  0 #4000    |    3    0    1    12 |    9    2    6    31
  1 #4001    |    1    0    1    10 |    7    2    6    18
"""

OSNOISE = """\
# RTLA osnoise histogram
# Time unit is microseconds (us)
# Duration:   0 00:01:00
Index   CPU-000   CPU-001
0          1000      1500
1           100       200
5             1         0
over:         0         0
count:     1101      1700
min:          0         0
avg:       0.10      0.12
max:          5         1
"""

OSNOISE_TOP = """\
                                          Operating System Noise
duration:   0 00:00:05 | time is in us
CPU Period       Runtime        Noise  % CPU Aval   Max Noise   Max Single          HW\
          NMI          IRQ      Softirq       Thread
  0 #4        4000000         2193    99.94517         900          310          20 \
           0         4021           12            3
  1 #4        4000000            0   100.00000           0            0           0 \
           0            0            0            0
"""

HWLATDETECT = """\
hwlatdetect:  test duration 120 seconds
   detector: tracer
   parameters:
        CPU list:          0-3
        Latency threshold: 10us
        Sample window:     1000000us
        Sample width:      500000us
     Non-sampling period:  500000us
        Output File:       None

Starting test
test finished
Max Latency: 32us
Samples recorded: 2
Samples exceeding threshold: 2
ts: 1466778654.482914117, delta:0.000000, inner:0, outer:14, cpu:1
ts: 1466778668.493030191, delta:14.010116, inner:32, outer:0, cpu:2
"""

XENOMAI = """\
== Sampling period: 100 us
== Test mode: periodic user-mode task
== All results in microseconds
warming up...
RTT|  00:00:01  (periodic user-mode task, 100 us period, priority 99)
RTH|----lat min|----lat avg|----lat max|-overrun|---msw|---lat best|--lat worst
RTD|      0.481|      0.560|      9.217|       0|     0|      0.481|      9.217
---|-----------|-----------|-----------|--------|------|-------------------------
RTS|      0.481|      0.560|      9.217|       2|     0|    00:00:05/00:00:05
---|--param|----samples-|--average--|---stddev--
HSD|    min|  0 -  1 |        5
HSD|    avg|  0 -  1 |    48000
HSD|    avg|  1 -  2 |     1000
HSD|    avg|  9 - 10 |        1
HSH|--param|--samples-|--average--|---stddev--
HSS|    avg|     49001|      0.021|      0.145
"""

RTEVAL = """\
<?xml version='1.0' encoding='UTF-8'?>
<rteval version="3.8"><uname><kernel>6.12.0-rt</kernel><arch>aarch64</arch></uname>
<Measurements><Profile><cyclictest command_line="cyclictest -i100 -qmu -h 3500 -p95">
<core id="0" priority="95"><statistics><samples>1000</samples>
<minimum unit="us">3</minimum><maximum unit="us">12</maximum></statistics>
<histogram nbuckets="3500">
<bucket index="3" value="900"/><bucket index="12" value="100"/>
</histogram></core>
<core id="1" priority="95"><statistics><samples>1000</samples>
<minimum unit="us">4</minimum><maximum unit="us">4000</maximum></statistics>
<histogram nbuckets="3500">
<bucket index="4" value="999"/><bucket index="3499" value="0"/>
</histogram></core>
</cyclictest></Profile></Measurements></rteval>
"""

DESCRIBED = {
    "timerlat": TIMERLAT,
    "timerlat top": TIMERLAT_TOP,
    "osnoise": OSNOISE,
    "osnoise top": OSNOISE_TOP,
    "hwlatdetect": HWLATDETECT,
    "xenomai": XENOMAI,
    "rteval": RTEVAL,
}

UNVERIFIED = ("xenomai",)
"""Of which there is no output of the program itself in tests/foreign."""
