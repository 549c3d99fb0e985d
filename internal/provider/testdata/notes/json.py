raise RuntimeError("a file of the skill hides a module of the standard library")
