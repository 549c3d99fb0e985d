// A hub for tests: the real program in its own directory.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

const program = process.env.LOADOUT_TEST_PROGRAM ?? "loadout";
const patience = 60_000; // the timeout of anything that should take moments

/** freePort returns an unused port. */
export async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  await once(server, "close");
  return port;
}

/** A running hub. end() stops it and deletes its data. */
export class Hub {
  constructor(dir, flags) {
    this.dir = dir;
    this.flags = flags;
  }

  /** start starts a hub with flags of the serve command. A hub with accounts keeps its port. */
  static async start({ accounts = false, flags = [], env = {}, config = "" } = {}) {
    const hub = new Hub(await mkdtemp(join(tmpdir(), "loadout-web-")), flags);
    if (config) {
      await mkdir(join(hub.dir, "config", "loadout"), { recursive: true });
      await writeFile(join(hub.dir, "config", "loadout", "loadout.yaml"), config);
    }
    hub.env = env;
    for (let tries = 5; ; tries--) {
      hub.port = await freePort();
      if (accounts) hub.flags = ["--accounts", "--public", `http://127.0.0.1:${hub.port}`, ...flags];
      try {
        await hub.up();
        return hub;
      } catch (error) {
        if (tries <= 1 || !error.message.includes("in use")) throw error; // another program was faster
      }
    }
  }

  /** setupPath returns the path of the link for the first administrator, once the hub has logged it. */
  async setupPath() {
    for (const late = Date.now() + patience; Date.now() < late;) {
      const link = /\/setup\/\S+(?=\n)/.exec(this.log);
      if (link) return link[0];
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    throw new Error(`no link for the first administrator:\n${this.log}`);
  }

  /** up starts the program again with its data. */
  async up() {
    const args = [
      "serve",
      "--addr",
      `127.0.0.1:${this.port}`,
      "--data",
      join(this.dir, "data"),
      "--json",
      ...this.flags,
    ];
    const env = {
      PATH: process.env.PATH,
      HOME: this.dir,
      LOADOUT_STATE: join(this.dir, "state"),
      XDG_CONFIG_HOME: join(this.dir, "config"),
      ...this.env,
    };
    this.process = spawn(program, args, { cwd: this.dir, env, stdio: ["ignore", "pipe", "pipe"] });
    this.log = "";
    this.process.stderr.on("data", (b) => (this.log += b));
    let said = "";
    const ended = once(this.process, "close").then(([code]) =>
      Promise.reject(new Error(`the hub ended with ${code}:\n${this.log}`)),
    );
    ended.catch(() => {});
    await Promise.race([
      ended,
      new Promise((resolve) => this.process.stdout.on("data", (b) => (said += b).trimEnd().endsWith("}") && resolve())),
      new Promise((_, reject) =>
        setTimeout(() => reject(new Error(`the hub does not start:\n${this.log}`)), patience).unref(),
      ),
    ]);
    Object.assign(this, JSON.parse(said));
  }

  /** down stops the program, like an operator or like a crash. */
  async down(signal = "SIGTERM") {
    if (this.process.exitCode !== null || this.process.signalCode) return;
    const gone = once(this.process, "exit");
    this.process.kill(signal);
    await gone;
  }

  async end() {
    await this.down("SIGKILL");
    await rm(this.dir, { recursive: true, force: true });
  }

  /** ask calls the API and throws an error for a failed request. */
  async ask(method, path, body, { token, type } = {}) {
    const headers = {};
    if (token) headers.Authorization = `Bearer ${token}`;
    if (body !== undefined) headers["Content-Type"] = type ?? "application/json";
    const answer = await fetch(this.url + "/api/v1" + path, {
      method,
      headers,
      body: body === undefined || type ? body : JSON.stringify(body),
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
    return text ? JSON.parse(text) : undefined;
  }

  /** upload uploads a skill with files given as {path: text}. */
  async upload(name, files, query = "") {
    return this.ask("POST", `/skills?file_name=${name}.zip${query}`, zip(files, name), { type: "application/zip" });
  }
}

/** zip returns a ZIP of one folder, without compression. */
export function zip(files, folder) {
  const parts = [];
  const entries = [];
  let at = 0;
  for (const [path, content] of Object.entries(files)) {
    const name = Buffer.from(folder ? `${folder}/${path}` : path);
    const data = Buffer.from(content);
    const head = Buffer.alloc(26);
    head.writeUInt16LE(20, 0);
    head.writeUInt16LE(0x21, 8); // 1980-01-01
    head.writeUInt32LE(crc32(data), 10);
    head.writeUInt32LE(data.length, 14);
    head.writeUInt32LE(data.length, 18);
    head.writeUInt16LE(name.length, 22);
    const local = Buffer.concat([Buffer.from("PK\x03\x04"), head, name, data]);
    const rest = Buffer.alloc(14);
    rest.writeUInt32LE(at, 10);
    entries.push(Buffer.concat([Buffer.from("PK\x01\x02\x14\x00", "latin1"), head, rest, name]));
    parts.push(local);
    at += local.length;
  }
  const index = Buffer.concat(entries);
  const end = Buffer.alloc(18);
  end.writeUInt16LE(entries.length, 4);
  end.writeUInt16LE(entries.length, 6);
  end.writeUInt32LE(index.length, 8);
  end.writeUInt32LE(at, 12);
  return Buffer.concat([...parts, index, Buffer.from("PK\x05\x06"), end]);
}

function crc32(data) {
  let crc = ~0;
  for (const byte of data) {
    crc ^= byte;
    for (let i = 0; i < 8; i++) crc = (crc >>> 1) ^ (0xedb88320 & -(crc & 1));
  }
  return ~crc >>> 0;
}

/** skill returns a SKILL.md. */
export const skill = (name, description, body = "Do it well.\n", more = "") =>
  `---\nname: ${name}\ndescription: ${description}\n${more}---\n\n${body}`;
