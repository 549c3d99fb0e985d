// worker_threads with shared memory.
const { Worker, isMainThread, workerData } = require('node:worker_threads')

if (isMainThread) {
  const shared = new Int32Array(new SharedArrayBuffer(4))
  let left = 4
  for (let i = 0; i < 4; i++) {
    new Worker(__filename, { workerData: shared }).on('exit', () => { if (--left === 0) console.log(shared[0]) })
  }
} else {
  for (let i = 0; i < 1000; i++) Atomics.add(workerData, 0, 1)
}
