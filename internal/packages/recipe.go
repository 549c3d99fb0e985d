package packages

import (
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/loadout-dev/loadout/internal/sandbox/mountpoint"
	"github.com/loadout-dev/loadout/internal/script"
	"github.com/loadout-dev/loadout/sandbox"
)

// Paths in an installer's sandbox.
const (
	appName   = "app" // below the work directory
	appDir    = mountpoint.Work + "/" + appName
	targetDir = appDir + "/packages" // directory of Python packages
	// lastFile is the last file of the work directory. If it is missing, the
	// backend collected only some of the files.
	lastFile = "~last"
)

// recipe describes how to run an installer and where it puts its files.
type recipe struct {
	tool   string
	argv   []string
	env    map[string]string
	mounts []sandbox.Mount
	// result is the directory below the work directory whose files are stored.
	result string
	// after, if not nil, is a command to run after the installation. Its
	// failure is ignored.
	after []string
	from  registry
}

const (
	hintUV  = "install uv from https://docs.astral.sh/uv or with `brew install uv` (macOS), or pip with `apt install python3-pip` (Debian)"
	hintNPM = "install it with `apt install npm` (Debian), `brew install node` (macOS) or from https://nodejs.org"
)

// recipe returns the recipe for installing the packages of a job.
func (b *Builder) recipe(j *job) (*recipe, error) {
	if j.needs.Kind == script.Node {
		return b.npmRecipe(j)
	}
	python := j.plan.Argv[0]
	r := &recipe{result: appName + "/packages", from: b.index, env: map[string]string{}}
	if uv, _, ok := b.opts.Host.Tool("uv"); ok {
		r.tool, r.argv, r.mounts = "uv", append(uv.Argv, b.uvArgs(j, python)...), j.mounts(uv.Prefixes)
		r.env["UV_NO_CONFIG"] = "1"
	} else {
		// With -I, Python ignores packages outside its own installation.
		r.tool, r.argv, r.mounts = "pip", append([]string{python, "-I", "-m", "pip"}, b.pipArgs(j)...), j.mounts(nil)
		r.env["PIP_CONFIG_FILE"] = "/dev/null"
	}
	r.after = []string{python, "-I", "-c", compilePython, targetDir}
	b.addEnvironment(r, j)
	return r, nil
}

// compilePython is a Python program that compiles the packages in a directory,
// which will be read-only, so every run would compile them again. It first
// removes the compiled files that packages contain: Python runs these without
// comparing them with the source. Compiled files of this form do not depend on
// file times.
const compilePython = `
import compileall, os, py_compile, shutil, sys
for directory, names, _ in os.walk(sys.argv[1]):
    if "__pycache__" in names:
        shutil.rmtree(os.path.join(directory, "__pycache__"), ignore_errors=True)
compileall.compile_dir(sys.argv[1], quiet=1, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
`

// IsCompiledPython reports whether a path of an installed Python package is that
// of a file that was compiled after the installation.
func IsCompiledPython(name string) bool {
	return path.Ext(name) == ".pyc" && path.Base(path.Dir(name)) == "__pycache__"
}

func (b *Builder) pipArgs(j *job) []string {
	args := []string{"install", "--isolated", "--no-input", "--disable-pip-version-check", "--no-cache-dir", "--no-color", "-q",
		"--progress-bar", "off", "--no-compile", "--retries", "1", "--timeout", "20",
		"--index-url", b.index.url, "--target", targetDir, "-r", appDir + "/requirements.txt"}
	if b.index.plainHost != "" {
		args = append(args, "--trusted-host", b.index.plainHost)
	}
	return append(args, b.pythonArgs(j)...)
}

func (b *Builder) uvArgs(j *job, python string) []string {
	args := []string{"pip", "install", "--no-config", "--no-cache", "--no-python-downloads", "--no-progress", "--color", "never", "-q",
		"--link-mode", "copy", "--index-strategy", "first-index", "--keyring-provider", "disabled",
		"--python", python, "--index-url", b.index.url, "--target", targetDir, "-r", appDir + "/requirements.txt"}
	return append(args, b.pythonArgs(j)...)
}

// pythonArgs returns the arguments common to pip and uv.
func (b *Builder) pythonArgs(j *job) []string {
	var args []string
	if _, ok := j.input["constraints.txt"]; ok {
		args = append(args, "-c", appDir+"/constraints.txt")
	}
	if j.needs.RequireHashes {
		args = append(args, "--require-hashes")
	}
	if !b.opts.AllowSource {
		args = append(args, "--only-binary", ":all:")
	}
	return args
}

func (b *Builder) npmRecipe(j *job) (*recipe, error) {
	npm, tried, ok := b.opts.Host.Tool("npm")
	if !ok {
		return nil, &MissingToolError{Tool: "npm", Needs: j.names, Hint: hintNPM, Tried: tried}
	}
	if filepath.Base(j.plan.Interpreter) == "node" && len(npm.Argv) == 2 {
		npm.Argv[0] = j.plan.Argv[0] // the interpreter that will run the script
	}
	command := "install"
	if _, ok := j.input["package-lock.json"]; ok {
		command = "ci"
	}
	r := &recipe{tool: "npm", mounts: j.mounts(npm.Prefixes), result: appName + "/node_modules", from: b.npm}
	r.argv = append(npm.Argv, command, "--registry="+b.npm.url, "--replace-registry-host=always", "--omit=dev",
		"--ignore-scripts="+strconv.FormatBool(!b.opts.AllowSource), "--bin-links="+strconv.FormatBool(b.opts.AllowSource),
		"--audit=false", "--fund=false", "--update-notifier=false", "--progress=false", "--color=false", "--loglevel=error", "--logs-max=0",
		"--fetch-retries=1", "--fetch-retry-mintimeout=500", "--cache="+mountpoint.Tmp+"/npm")
	// npm rejects the same file for both, and treats a missing file as empty.
	r.env = map[string]string{"npm_config_userconfig": "/dev/null", "npm_config_globalconfig": "/nonexistent/npmrc"}
	b.addEnvironment(r, j)
	return r, nil
}

// addEnvironment sets the environment variables that all installers need.
func (b *Builder) addEnvironment(r *recipe, j *job) {
	r.env["PATH"] = strings.Join(append(append([]string{}, j.plan.Bin...), "/usr/local/bin", "/usr/bin", "/bin"), ":")
	// Use the proxy even for a registry on this machine, because a sandbox has
	// its own loopback interface.
	r.env["NO_PROXY"], r.env["no_proxy"] = "", ""
}
