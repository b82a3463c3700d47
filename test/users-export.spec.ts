import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Controller, Get, Module, Query, Res, StreamableFile, type INestApplication } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { parse } from 'csv-parse/sync';
import type { Response } from 'express';
import { once } from 'node:events';
import { pipeline } from 'node:stream/promises';
import { text } from 'node:stream/consumers';
import type { DebateSpaceSimulator } from 'debate-space-simulator';
import {
  AbortedError,
  DebateSpaceModule,
  DebateSpaceService,
  InvalidArgumentError,
  PermissionError,
  type UserFilters,
  type UsersExportOptions,
} from 'nestjs-debate-space';
import { RunningApps } from './support/running-apps.js';
import { startService, using } from './support/service.js';
import { serviceClients } from './support/service-clients.js';

const people = (count: number) =>
  Array.from({ length: count }, (_, n) => ({ uid: `u-${n + 1}`, first_name: 'Zoë', contributions: n }));

const { simulator, scripted, client } = serviceClients();

describe('an export of the users', () => {
  it('has every user as a line of JSON', async () => {
    const service = await simulator({ users: people(250) });
    const exported = (await client(service)).exportUsers({ sort: 'uid' });
    const lines = (await text(exported)).split('\n');
    expect(lines.pop()).toBe('');
    expect(lines.map((line) => JSON.parse(line) as unknown)).toMatchObject(
      people(250).map(({ uid }) => ({ uid, first_name: 'Zoë', email: null })),
    );
    expect(service.received.of('list').map(({ query }) => query)).toEqual(
      ['1', '2', '3'].map((page) => ({ page, per_page: '100', sort: 'uid' })),
    );
  });

  it('has every user as a row of CSV', async () => {
    const service = await simulator({ users: people(25) });
    const exported = (await client(service)).exportUsers({ perPage: 10 }, { format: 'csv' });
    const [header, ...rows] = parse(await text(exported));
    expect(header?.join()).toBe(
      'uid,full_name,first_name,last_name,email,image_url,created_at,id,contributions_count,more',
    );
    expect(rows.map(([uid, , name]) => [uid, name])).toEqual(people(25).map(({ uid }) => [uid, 'Zoë']));
    expect(service.received.of('list')).toHaveLength(3);
  });

  it('has the columns that are asked for', async () => {
    const debate = await client(await simulator({ users: people(2) }));
    const columns = ['contributions_count', 'uid', 'toString'];
    expect(await text(debate.exportUsers({}, { format: 'csv', columns }))).toBe(
      'contributions_count,uid,toString\n0,u-1,\n1,u-2,\n',
    );
    expect(await text(debate.exportUsers({}, { columns }))).toBe(
      '{"contributions_count":0,"uid":"u-1"}\n{"contributions_count":1,"uid":"u-2"}\n',
    );
  });

  it('of nobody is a header row, or nothing', async () => {
    const debate = await client(await simulator({ users: [] }));
    expect(await text(debate.exportUsers({}, { format: 'csv', columns: ['uid'] }))).toBe('uid\n');
    expect(await text(debate.exportUsers())).toBe('');
  });

  it.each<[UserFilters, unknown, string]>([
    [{}, { format: 'xlsx' }, 'format must be'],
    [{}, { format: null }, 'format must be'],
    [{}, { columns: [] }, 'columns must be'],
    [{}, { columns: 'uid' }, 'columns must be'],
    [{}, { columns: ['uid', 'uid'] }, 'columns must be'],
    [{}, { columns: ['uid', ''] }, 'columns must be'],
    [{}, { columns: [1] }, 'columns must be'],
    [{ perPage: 0 }, {}, 'perPage must be'],
    [{ per_page: 10 }, {}, 'use perPage'],
  ])('of %j with %j is refused at once', async (query, options, problem) => {
    const service = await scripted(() => ({}));
    const debate = await client(service);
    const attempt = () => debate.exportUsers(query, options as UsersExportOptions);
    expect(attempt).toThrow(InvalidArgumentError);
    expect(attempt).toThrow(problem);
    expect(service.connections).toBe(0);
  });

  it('asks for nothing before it is read, and for no page before there is room', async () => {
    const service = await simulator({ users: people(1000) });
    const debate = await client(service);
    const exported = debate.exportUsers();
    expect(service.received.count).toBe(0);
    exported.read(0);
    await once(exported, 'readable');
    await debate.listUsers();
    expect(service.received.of('list').map(({ query }) => query?.per_page)).toEqual(['100', undefined]);
    exported.destroy();
  });

  it('fails with the error of the list, after the users that came before', async () => {
    const service = await simulator({ users: people(200) });
    const exported = (await client(service)).exportUsers();
    let had = '';
    const reading = (async () => {
      for await (const piece of exported) had += piece as string;
    })();
    await service.received.waitFor('list');
    service.faults.add({ operation: 'list', kind: 'status', status: 403 });
    await expect(reading).rejects.toBeInstanceOf(PermissionError);
    expect(had).toContain('"uid":"u-100"');
    expect(exported.errored).toMatchObject({ operation: 'listUsers', status: 403 });
  });

  it('ends with the caller’s signal', async () => {
    const service = await simulator({ users: people(10) });
    service.faults.add({ operation: 'list', kind: 'latency', ms: 60_000 });
    const patience = new AbortController();
    const reading = text((await client(service)).exportUsers({}, { signal: patience.signal }));
    await service.received.waitFor('list');
    patience.abort();
    await expect(reading).rejects.toBeInstanceOf(AbortedError);
  });
});

@Controller()
class ExportController {
  constructor(readonly debateSpace: DebateSpaceService) {}

  @Get('users.csv')
  file(): StreamableFile {
    const type = 'text/csv; charset=utf-8';
    return new StreamableFile(this.debateSpace.exportUsers({}, { format: 'csv' }), { type });
  }

  @Get('users.ndjson')
  async response(@Res() response: Response, @Query('perPage') perPage: string): Promise<void> {
    await pipeline(this.debateSpace.exportUsers({ perPage: Number(perPage) }), response).catch(
      () => undefined,
    );
  }
}

describe('an app that exports the users', () => {
  const apps = new RunningApps();
  let service: DebateSpaceSimulator;
  let url: string;

  beforeEach(async () => {
    service = await startService({ users: people(1000), rateLimit: false });
    url = await apps.listen(create());
  });
  afterEach(async () => {
    await apps.close();
    await service.stop();
  });

  async function create(): Promise<INestApplication> {
    @Module({
      imports: [DebateSpaceModule.forRoot(using(service, { http: { rateLimit: false } }))],
      controllers: [ExportController],
    })
    class App {}
    return NestFactory.create(App, { logger: false });
  }

  it('gives its caller a file', async () => {
    const response = await fetch(`${url}/users.csv`);
    expect(response.headers.get('content-type')).toBe('text/csv; charset=utf-8');
    const rows = parse(await response.text());
    expect(rows).toHaveLength(1001);
    expect(rows[1000]?.slice(0, 3)).toEqual(['u-1000', 'Zoë', 'Zoë']);
  });

  it('asks for no more when its caller hangs up', async () => {
    service.faults.add({ operation: 'list', kind: 'latency', ms: 60_000, times: 1 });
    const patience = new AbortController();
    const response = fetch(`${url}/users.ndjson?perPage=10`, { signal: patience.signal });
    await service.received.waitFor('list');
    patience.abort();
    await expect(response).rejects.toThrow('abort');
    await apps.close();
    expect(service.received.of('list')).toHaveLength(1);
  });

  it('breaks the response off when the service fails', async () => {
    const response = fetch(`${url}/users.ndjson?perPage=100`).then((answer) => answer.text());
    await service.received.waitFor('list');
    service.faults.add({ operation: 'list', kind: 'status', status: 403 });
    await expect(response).rejects.toThrow();
  });
});
