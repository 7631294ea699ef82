"""
Designs by somebody who has not read how rtscope explains, and what it says of them.

* `truth.toml`: each design, and what is right; written before the first explanation
* `truth.py`: the same as Python has it
* `boots.py`: which designs are planted in one boot, and when
* `judge.py`: whether an explanation is right
* `run.py`: measures all designs, and writes lab/designs-of-a-stranger.md
* `modules/`, `programs/`: what makes the wake-ups late
* `second/`: truth, modules and programs of another author, a day later
* `third/`: of one more, after the explainer was mended for both
* `path/`: what delays events of devices on their way; lab/path-culprits.md is its page
"""
