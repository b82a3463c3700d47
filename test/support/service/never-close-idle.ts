import type { Server } from 'node:http';
import type { INestApplication } from '@nestjs/common';

/**
 * Has the server keep idle connections. Node closes them after five seconds; on a busy machine a client sends its next
 * request into a connection that is being closed, and gets ECONNRESET.
 */
export function neverCloseIdle(app: INestApplication): void {
  (app.getHttpServer() as Server).keepAliveTimeout = 0;
}
