"""subprocess: a pipe, a shell, input, an exit code and a time limit."""
import subprocess

words = subprocess.run(["tr", "a-z", "A-Z"], input="some words", capture_output=True, text=True, check=True).stdout
shell = subprocess.run("seq 1 100 | wc -l", shell=True, capture_output=True, text=True).stdout.strip()
code = subprocess.run(["sh", "-c", "exit 7"]).returncode
try:
    subprocess.run(["sleep", "30"], timeout=0.1)
    late = "no"
except subprocess.TimeoutExpired:
    late = "timeout"
print(words, shell, code, late)
