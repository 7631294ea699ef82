<CsoundSynthesizer><CsInstruments>
sr=48000
ksmps=64
nchnls=2
0dbfs=1
instr 1
a1 poscil 0.1, 440
outs a1, a1
endin
</CsInstruments><CsScore>
i1 0 600
</CsScore></CsoundSynthesizer>
