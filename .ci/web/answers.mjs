// Compares the answers of the tool as WebAssembly, in the shim and with the files that the page gives it, with those of the
// program for this system: what both print and write, and their exit codes.
//
// usage: node answers.mjs SHIM MODULE PROGRAM SECONDS < JOBS
// A job is a line of JSON: {"args": […], "files": {NAME: TEXT}, "stdin": TEXT}. In an argument, $again stands for the first string
// of an interleaving that the job before it has printed; without one the job is left out.
// Prints a line for each difference, and a line of JSON with what was compared: {"VERB": NUMBER, …}. Exit code 1: there are some.

import { spawnSync } from 'node:child_process'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import readline from 'node:readline'
import { pathToFileURL } from 'node:url'
import { Worker, isMainThread, parentPort } from 'node:worker_threads'

const [SHIM, MODULE, PROGRAM, SECONDS] = process.argv.slice(2)
const AGAIN = /\S+@[\w.-]+:clr1:\S*/
const DECODER = new TextDecoder()

/** Collects what is written to a stream. */
function sink(shim, into) {
  const stream = new shim.ConsoleStdout((bytes) => into.push(Uint8Array.from(bytes)))
  // A file, not a terminal.
  stream.fd_fdstat_get = () => {
    const stat = new shim.wasi.Fdstat(shim.wasi.FILETYPE_REGULAR_FILE, 0)
    stat.fs_rights_base = BigInt(shim.wasi.RIGHTS_FD_WRITE)
    return { ret: 0, fdstat: stat }
  }
  return stream
}

/** Runs the module once. */
function inModule(shim, module, { args, files, stdin }) {
  const [out, err] = [[], []]
  const encoder = new TextEncoder()
  const entries = Object.entries(files).map(([name, text]) => [name, new shim.File(encoder.encode(text))])
  const folder = new shim.PreopenDirectory('.', new Map(entries))
  const input = new shim.OpenFile(new shim.File(encoder.encode(stdin ?? '')))
  const wasi = new shim.WASI(['clrsim', ...args], [], [input, sink(shim, out), sink(shim, err), folder], { debug: false })
  const instance = new WebAssembly.Instance(module, { wasi_snapshot_preview1: wasi.wasiImport })
  let code
  try {
    code = wasi.start(instance)
  } catch (trap) {
    code = String(trap)
  }
  const written = [...folder.dir.contents].filter(([, it]) => it instanceof shim.File)
  return answer(code, Buffer.concat(out), Buffer.concat(err), written.map(([name, file]) => [name, DECODER.decode(file.data)]))
}

/** Runs the program once, in a folder of its own. */
function inProgram(folder, { args, files, stdin }) {
  for (const name of fs.readdirSync(folder)) fs.rmSync(path.join(folder, name), { recursive: true })
  for (const [name, text] of Object.entries(files)) fs.writeFileSync(path.join(folder, name), text)
  const env = { PATH: process.env.PATH }
  const ended = spawnSync(PROGRAM, args, { cwd: folder, input: stdin ?? '', env, maxBuffer: 1 << 28 })
  const written = fs.readdirSync(folder).map((name) => [name, fs.readFileSync(path.join(folder, name), 'utf8')])
  return answer(ended.status ?? String(ended.error ?? ended.signal), ended.stdout, ended.stderr, written)
}

function answer(code, out, err, written) {
  return { 'exit code': code, stdout: DECODER.decode(out), stderr: DECODER.decode(err), files: JSON.stringify(written.sort()) }
}

/** Says where two answers begin to differ. */
function difference(job, native, module) {
  for (const [part, expected] of Object.entries(native)) {
    const found = module[part]
    if (found === expected) continue
    const [lines, others] = [expected, found].map((it) => String(it).split('\n'))
    const at = lines.findIndex((line, index) => line !== others[index])
    const first = at < 0 ? lines.length : at
    const [one, other] = [lines, others].map((it) => JSON.stringify(it[first] ?? '').slice(0, 300))
    const why = part === 'exit code' ? ` (${JSON.stringify(module.stderr.slice(0, 300))})` : ''
    return `clrsim ${job.args.join(' ')}: ${part}, line ${first + 1}: ${one}, as WebAssembly ${other}${why}`
  }
  return undefined
}

async function work() {
  const shim = await import(pathToFileURL(path.resolve(SHIM)))
  const module = new WebAssembly.Module(fs.readFileSync(MODULE))
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'clrsim-answers-'))
  let again
  parentPort.on('message', (job) => {
    if (job === undefined) {
      fs.rmSync(folder, { recursive: true })
      parentPort.close()
      return
    }
    const wants = job.args.some((arg) => arg.includes('$again'))
    if (wants && again === undefined) return parentPort.postMessage({})
    const args = job.args.map((arg) => arg.replace('$again', () => again))
    const native = inProgram(folder, { ...job, args })
    if (!wants) again = AGAIN.exec(native.stdout)?.[0]
    const differs = difference({ args }, native, inModule(shim, module, { ...job, args }))
    parentPort.postMessage({ compared: args[0], differs })
  })
  parentPort.postMessage({})
}

async function main() {
  const jobs = []
  for await (const line of readline.createInterface({ input: process.stdin })) jobs.push(JSON.parse(line))
  const compared = {}
  let [next, failed] = [0, false]
  const count = ({ compared: verb, differs }) => {
    if (verb) compared[verb] = (compared[verb] ?? 0) + 1
    if (!differs) return
    failed = true
    console.log(differs)
  }
  // The jobs of one text stay together, for the sake of `$again`.
  const texts = Object.values(grouped(jobs))
  const one = () => new Promise((ended, broken) => {
    let [worker, mine, timer] = [undefined, [], undefined]
    const begin = () => {
      worker = new Worker(new URL(import.meta.url), { argv: process.argv.slice(2) })
      worker.on('message', (message) => {
        clearTimeout(timer)
        count(message)
        go()
      })
      worker.on('error', broken)
    }
    const go = () => {
      if (mine.length === 0) mine = [...(texts[next++] ?? [])]
      const job = mine.shift()
      worker.postMessage(job)
      if (job === undefined) return worker.on('exit', ended)
      timer = setTimeout(async () => {
        count({ differs: `clrsim ${job.args.join(' ')}: no answer within ${SECONDS} s` })
        worker.removeAllListeners()
        await worker.terminate()
        begin()
      }, SECONDS * 1000)
    }
    begin()
  })
  await Promise.all(Array.from({ length: Math.min(os.availableParallelism(), texts.length) }, one))
  console.log(JSON.stringify(compared))
  process.exitCode = failed ? 1 : 0
}

/** Groups the jobs by their texts. */
function grouped(jobs) {
  const groups = {}
  for (const job of jobs) (groups[job.text] ??= []).push(job)
  return groups
}

await (isMainThread ? main() : work())
