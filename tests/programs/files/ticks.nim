import os, locks, strutils, times, std/monotimes
var L: Lock
var s {.guard: L.}: int
proc control() {.thread.} =
  while true:
    var q = newSeq[string]()
    for i in 0..20: q.add($i)
    let j = q.join(",")
    withLock L: s = j.len
    sleep(5)
proc logger() {.thread.} =
  while true:
    withLock L:
      let t = getMonoTime()
      while (getMonoTime() - t).inMilliseconds < 3: discard
    sleep(9)
initLock(L)
var a, b: Thread[void]
createThread(a, control); createThread(b, logger)
joinThread(a)
