#!/bin/sh
jackd -R -P80 -d dummy -r 48000 -p 256 &
jack_wait -w >/dev/null
jack_metro -b 300
