import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';

/** Listens on one address, and can cease and begin again on the same port. */
export class HttpListener {
  readonly #handler: RequestListener;
  readonly #host: string;
  readonly #keepsProcessAlive: boolean;
  readonly #sockets = new Set<Socket>();
  #port: number;
  #server?: Server;
  #lastStep: Promise<void> = Promise.resolve();

  /**
   * @param port 0 lets the system choose; the port chosen is kept from then on
   * @param keepsProcessAlive whether the event loop waits for the server and its connections
   */
  constructor(handler: RequestListener, host: string, port: number, keepsProcessAlive: boolean) {
    this.#handler = handler;
    this.#host = host;
    this.#port = port;
    this.#keepsProcessAlive = keepsProcessAlive;
  }

  /** `http://host:port`, with an address a client can connect to. */
  get origin(): string {
    const host = { '0.0.0.0': '127.0.0.1', '::': '::1' }[this.#host] ?? this.#host;
    return `http://${host.includes(':') ? `[${host}]` : host}:${this.#port}`;
  }

  /** @throws the system's error, such as EADDRINUSE */
  open(): Promise<void> {
    return this.#inTurn(() => this.#listen());
  }

  /** Destroys every connection, event streams and idle ones included, and stops listening. */
  close(): Promise<void> {
    return this.#inTurn(() => this.#shut());
  }

  /** One step after the other: the port must be free again before it is listened on again. */
  #inTurn(step: () => Promise<void>): Promise<void> {
    const done = this.#lastStep.then(step);
    this.#lastStep = done.catch(() => undefined);
    return done;
  }

  async #listen(): Promise<void> {
    if (this.#server) return;
    const server = createServer(this.#handler);
    server.on('connection', (socket: Socket) => {
      if (!this.#keepsProcessAlive) socket.unref();
      this.#sockets.add(socket);
      socket.once('close', () => this.#sockets.delete(socket));
    });
    server.listen(this.#port, this.#host);
    await once(server, 'listening');
    if (!this.#keepsProcessAlive) server.unref();
    this.#port = (server.address() as AddressInfo).port;
    this.#server = server;
  }

  async #shut(): Promise<void> {
    const server = this.#server;
    if (!server) return;
    this.#server = undefined;
    const closed = once(server, 'close');
    server.close();
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }
}
