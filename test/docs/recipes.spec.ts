import { beforeEach, describe, expect, it, jest } from '@jest/globals';
import { parse } from 'csv-parse/sync';
import { DebateSpaceErasures, type ErasureDryRun } from 'nestjs-debate-space';
import { connect } from 'node:net';
import { Readable } from 'node:stream';
import { lastValueFrom } from 'rxjs';
import { scenario } from '#support/hosts/scenario.js';

/** Lets everybody in. */
class NoGuard {
  canActivate = (): boolean => true;
}
jest.unstable_mockModule('@nestjs/passport', () => ({ AuthGuard: () => NoGuard }));
const { linesOf, uidsOfCsv, uidsOfNdjson } = await import('../../docs/examples/recipes/uids-of-file.js');
const { BulkErasureController } = await import('../../docs/examples/recipes/bulk-erasure.controller.js');
const { UsersExportController } = await import('../../docs/examples/recipes/users-export.controller.js');

async function all(uids: AsyncIterable<string>): Promise<string[]> {
  const found: string[] = [];
  for await (const uid of uids) found.push(uid);
  return found;
}

describe('the recipe for a file of uids', () => {
  it.each([
    ['CSV', uidsOfCsv, 'name,uid\nA,ada\n"B, ""b""","b,en"\n\nC,Zoë\n'],
    ['NDJSON', uidsOfNdjson, '{"name":"A","uid":"ada"}\n{"uid":"b,en"}\n\n  {"uid":"Zo\\u00eb"}\n'],
    ['lines', linesOf, 'ada\nb,en\n\nZoë\n'],
  ] as const)('rejects when a file in %s breaks off', async (_format, uidsOf, text) => {
    const file = new Readable({ read: () => undefined });
    const reading = all(uidsOf(file));
    file.push(text);
    setImmediate(() => file.destroy(new Error('the connection broke')));
    await expect(reading).rejects.toThrow('the connection broke');
  });
});

describe('a host with the recipes', () => {
  const people = Array.from({ length: 250 }, (_, n) => ({ uid: `u-${n + 1}`, first_name: '=1+1' }));
  const scene = scenario({ users: people, rateLimit: false });
  let erasures: DebateSpaceErasures;
  let url: string;
  beforeEach(async () => {
    const controllers = [BulkErasureController, UsersExportController];
    const app = await scene.app({ http: { rateLimit: false } }, { controllers });
    await app.listen(0, '127.0.0.1');
    url = await app.getUrl();
    erasures = app.get(DebateSpaceErasures);
  });

  const upload = (path: string, body: string): Promise<Response> =>
    fetch(`${url}/admin/erasures/${path}`, { method: 'POST', body, headers: { 'Content-Type': 'text/csv' } });

  it('counts an uploaded CSV, and erases its users', async () => {
    const csv = 'name,uid\nA,u-1\nB,u-2\nC,nobody\n';
    const counts = (await (await upload('case-1/dry-run', csv)).json()) as ErasureDryRun;
    expect(counts).toMatchObject({ total: 3, known: 2, notFoundItems: [3] });
    expect((await upload('case-1', csv)).status).toBe(202);
    await lastValueFrom(erasures.progress('case-1'));
    expect(await erasures.status('case-1')).toMatchObject({ done: 2, notFound: 1 });
    const erased = scene.service.received.of('anonymize').map(({ uid }) => uid);
    expect(erased.toSorted()).toEqual(['nobody', 'u-1', 'u-2']);
  });

  it('erases nobody of a CSV that cannot be read', async () => {
    const response = await upload('case-2', 'uid\nu-1\n"u-2"x\n');
    expect([response.status, await response.text()]).toEqual([400, expect.stringContaining('row 3')]);
    await expect(erasures.status('case-2')).rejects.toMatchObject({
      code: 'ERR_DEBATE_SPACE_UNKNOWN_ERASURE',
    });
    expect(scene.service.received.of('anonymize')).toEqual([]);
  });

  it('erases nobody of an upload that breaks off', async () => {
    const socket = connect(Number(new URL(url).port), '127.0.0.1');
    const rows = Array.from({ length: 260 }, (_, n) => `u-${n}\n`).join('');
    socket.write(
      `POST /admin/erasures/case-3 HTTP/1.1\r\nHost: x\r\nContent-Length: 10000\r\n\r\nuid\n${rows}`,
    );
    const stored = async (): Promise<number> =>
      (await erasures.status('case-3').catch(() => undefined))?.total ?? 0;
    while ((await stored()) === 0) await new Promise(setImmediate);
    socket.destroy();
    await scene.stop();
    expect(scene.service.received.of('anonymize')).toEqual([]);
  });

  it('gives its administrators all users as CSV, without formulas', async () => {
    const response = await fetch(`${url}/admin/users/users.csv`);
    expect(response.headers.get('content-type')).toBe('text/csv; charset=utf-8');
    const [header, ...rows] = parse(await response.text());
    expect(header).toEqual(['uid', 'full_name', 'email', 'created_at']);
    expect(rows.map(([uid, name]) => [uid, name])).toEqual(people.map(({ uid }) => [uid, "'=1+1"]));
    expect(scene.service.received.of('list')).toHaveLength(3);
  });

  it.each(['users.csv', 'users.ndjson'])('breaks %s off when the service fails', async (name) => {
    scene.service.faults.add({ operation: 'list', kind: 'latency', ms: 0, times: 1 });
    scene.service.faults.add({ operation: 'list', kind: 'status', status: 403 });
    const reading = fetch(`${url}/admin/users/${name}`).then((response) => response.text());
    await expect(reading).rejects.toThrow();
  });
});
