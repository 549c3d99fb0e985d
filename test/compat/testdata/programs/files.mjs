// fs/promises: directories, streams, copies and a watcher's worth of names.
import { mkdtemp, writeFile, readdir, cp, rm, stat } from 'node:fs/promises'
import { createReadStream, createWriteStream } from 'node:fs'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const dir = await mkdtemp(join(tmpdir(), 'files-'))
await Promise.all([...Array(50).keys()].map((n) => writeFile(join(dir, `${n}.txt`), 'x'.repeat(n * 100))))
await cp(dir, 'copy', { recursive: true })
await pipeline(createReadStream('copy/49.txt'), createGzip(), createWriteStream('copy/49.gz'))
console.log((await readdir('copy')).length, (await stat('copy/49.gz')).size < 4900)
await rm(dir, { recursive: true })
