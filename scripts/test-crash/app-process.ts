import { fork, type ChildProcess } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import type { AppEvent, AppSettings } from './app.js';
import type { Run } from './trial.js';

/** Compiles app.ts once: a hundred processes start, and each would load the compiler. @returns where it is */
export function compileApp(): string {
  const source = readFileSync(new URL('app.ts', import.meta.url), 'utf8');
  const compilerOptions = { target: ts.ScriptTarget.ES2023, experimentalDecorators: true };
  const folder = new URL('../../node_modules/.cache/test-crash/', import.meta.url);
  const program = new URL(`app-${process.pid}.mjs`, folder);
  mkdirSync(folder, { recursive: true });
  writeFileSync(program, ts.transpileModule(source, { compilerOptions }).outputText);
  return fileURLToPath(program);
}

/** A shutdown takes five seconds; the rest is for a busy machine. */
const EXIT_TIMEOUT_MS = 20_000;

/** One instance of the host, which is killed and started again. */
export class AppProcess extends EventEmitter<{ event: [AppEvent] }> {
  /** Where it listens; `undefined` while it does not. */
  url: string | undefined;
  #child: ChildProcess | undefined;
  /** Processes that are meant to end. */
  readonly #ending = new WeakSet<ChildProcess>();
  readonly #program: string;
  readonly #settings: string;
  #fail: (error: Error) => void = () => undefined;
  /** Rejects when a process ends by itself, or does not end. */
  readonly death = new Promise<never>((_, reject) => (this.#fail = reject));

  constructor({ program, cleanup }: Run, settings: AppSettings) {
    super();
    this.#program = program;
    this.#settings = JSON.stringify(settings);
    cleanup.add(() => this.#child?.kill('SIGKILL'));
  }

  /** Resolves when it listens, or when it was killed before. */
  async start(): Promise<void> {
    const execArgv = process.execArgv.filter((flag) => flag === '--expose-gc');
    const child = fork(this.#program, [this.#settings], { execArgv });
    this.#child = child;
    const listening = new Promise<void>((resolve) => {
      child.on('message', (event: AppEvent) => {
        this.emit('event', event);
        if (event.type !== 'listening') return;
        this.url = event.detail;
        resolve();
      });
    });
    const ended = once(child, 'exit').then(([code, signal]: unknown[]) => {
      this.url = undefined;
      if (!this.#ending.has(child))
        this.#fail(new Error(`an app ended by itself: ${String(signal ?? code)}`));
    });
    await Promise.race([listening, ended]);
  }

  /** Resolves when the process is gone. */
  async end(signal: 'SIGKILL' | 'SIGTERM' = 'SIGKILL'): Promise<void> {
    const child = this.#child;
    if (child?.exitCode !== null || child.signalCode !== null) return;
    this.url = undefined;
    const ended = this.ended();
    child.kill(signal);
    const late = setTimeout(() => {
      this.#fail(new Error(`an app was still there ${EXIT_TIMEOUT_MS / 1_000} s after ${signal}`));
    }, EXIT_TIMEOUT_MS);
    await ended;
    clearTimeout(late);
  }

  /** The process is meant to end from now on. Resolves when it is gone. */
  async ended(): Promise<void> {
    if (!this.#child) return;
    this.#ending.add(this.#child);
    await once(this.#child, 'exit');
  }

  /** @returns `undefined` when the app does not answer, or answers with an error */
  async ask<Answer>(path: string, body: object = {}): Promise<Answer | undefined> {
    const headers = { 'content-type': 'application/json' };
    const call = { method: 'POST', headers, body: JSON.stringify(body) };
    try {
      const response = await fetch(`${String(this.url)}/${path}`, call);
      return response.ok ? ((await response.json()) as Answer) : undefined;
    } catch {
      return undefined;
    }
  }
}
