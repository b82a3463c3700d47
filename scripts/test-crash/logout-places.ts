import type { LogoutTrial } from './logout-trial.js';
import { PostgresServer } from './postgres.js';
import { RedisServer } from './redis.js';
import type { ServerProcess } from './server-process.js';

async function onServer(trial: LogoutTrial, server: ServerProcess): Promise<string> {
  trial.server = server;
  await server.start();
  return server.url;
}

export const redis =
  (appendfsync: 'always' | 'everysec') =>
  (trial: LogoutTrial): Promise<string> =>
    onServer(trial, new RedisServer(appendfsync));

export const postgres = (trial: LogoutTrial): Promise<string> => onServer(trial, new PostgresServer());
