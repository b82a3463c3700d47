import type { IncomingHttpHeaders } from 'node:http';

/** A request as an operation sees it: read completely, path parameters decoded. */
export interface ServiceCall {
  readonly method: string;
  /** As sent, still percent-encoded, without the query. */
  readonly path: string;
  readonly params: Readonly<Partial<Record<string, string>>>;
  readonly query: Readonly<Record<string, string | string[]>>;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}
