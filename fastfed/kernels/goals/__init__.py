"""The goals, the questions of clients and server, a file each.

`hooks` lists what a goal has to answer; `best`, `top`, `eps` and `threshold` answer it. A goal
registers itself when its file is imported, and its class in `fastfed.model.goals` imports that
file when a run begins. Why each rule errs with probability delta at most is said there.
"""
