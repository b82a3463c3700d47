import { afterEach, beforeEach } from '@jest/globals';
import { Module, type ModuleMetadata, type NestApplicationOptions } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { DebateSpaceSimulator, SimulatorOptions } from 'debate-space-simulator';
import { DebateSpaceModule, type DebateSpaceModuleOptions, type StorageEngine } from 'nestjs-debate-space';
import { sqliteStorage } from 'nestjs-debate-space/sqlite';
import { RunningApps } from './running-apps.js';
import { startService, using } from '../service/service.js';
import { SessionHost, type SessionHostOptions } from './session-host.js';

/** Each test has a service and starts hosts on it. All of them stop after the test, also after one that fails. */
export function scenario(options?: SimulatorOptions): Scenario {
  const scene = new Scenario();
  beforeEach(() => scene.begin(options));
  afterEach(() => scene.end());
  return scene;
}

export class Scenario {
  /** For apps that no class of hosts starts. */
  readonly apps = new RunningApps();
  readonly #hosts: { stop(): Promise<void> }[] = [];
  readonly #cleanups: (() => unknown)[] = [];
  #service: DebateSpaceSimulator | undefined;

  get service(): DebateSpaceSimulator {
    if (!this.#service) throw new Error('A scenario has a service while a test runs.');
    return this.#service;
  }

  async begin(options?: SimulatorOptions): Promise<void> {
    this.#service = await this.startService(options);
  }

  async end(): Promise<void> {
    await this.stop();
    for (const cleanUp of this.#cleanups.splice(0).reverse()) await cleanUp();
  }

  /** Starts one more service. */
  async startService(options?: SimulatorOptions): Promise<DebateSpaceSimulator> {
    const service = await startService(options);
    this.afterwards(() => service.stop());
    return service;
  }

  /** Starts a host on Express. @param plugin its options for the plugin, which uses the service */
  start(options: SessionHostOptions = {}, plugin?: Partial<DebateSpaceModuleOptions>): Promise<SessionHost> {
    return this.add(SessionHost.start({ debateSpace: using(this.service, plugin), ...options }));
  }

  /** Creates an app that has no login. @param plugin its options for the plugin @param module what else it has */
  app(
    plugin?: Partial<DebateSpaceModuleOptions>,
    { imports = [], ...module }: ModuleMetadata = {},
    settings?: NestApplicationOptions,
  ): Promise<NestExpressApplication> {
    @Module({ imports: [DebateSpaceModule.forRoot(using(this.service, plugin)), ...imports], ...module })
    class App {}
    const options = { logger: false, abortOnError: false, ...settings } as const;
    return this.apps.add(NestFactory.create<NestExpressApplication>(App, options));
  }

  /** Stops a host of another class as well. */
  async add<Host extends { stop(): Promise<void> }>(starting: Promise<Host>): Promise<Host> {
    const host = await starting;
    this.#hosts.push(host);
    return host;
  }

  /** An empty storage in a file, which is removed after the test. What the engine opens is always this file. */
  async sqlite(): Promise<StorageEngine> {
    const folder = await mkdtemp(join(tmpdir(), 'storage-'));
    this.afterwards(() => rm(folder, { recursive: true }));
    return sqliteStorage({ path: join(folder, 'debate-space.db') });
  }

  /** Cleans up after the test, in reverse order, when the hosts have stopped. */
  afterwards(cleanUp: () => unknown): void {
    this.#cleanups.push(cleanUp);
  }

  /** Stops the hosts: each decides which sessions have ended, and delivers what it can. */
  async stop(): Promise<void> {
    for (const host of this.#hosts.splice(0)) await host.stop();
    await this.apps.close();
  }

  /** Stops the hosts. @returns the uids that the service received */
  async logouts(): Promise<readonly string[]> {
    await this.stop();
    return this.service.received.logouts;
  }
}
