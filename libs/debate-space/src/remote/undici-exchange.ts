import {
  AxiosError,
  CanceledError,
  type AxiosResponse,
  type InternalAxiosRequestConfig,
  type RawAxiosResponseHeaders,
} from 'axios';
import type { Dispatcher } from 'undici';
import { decompressorFor, TOO_LARGE } from './compressed-body.js';

/** One request and its answer: what undici calls while they pass, and the response in axios's form. */
export class UndiciExchange implements Dispatcher.DispatchHandler {
  readonly response: Promise<AxiosResponse<string>>;
  /** Whether the service can have seen any of the request: there was a connection, and writing began. */
  sent = false;
  readonly #config: InternalAxiosRequestConfig;
  readonly #limit: number;
  #settle!: { resolve: (response: AxiosResponse<string>) => void; reject: (error: AxiosError) => void };
  #controller: Dispatcher.DispatchController | undefined;
  #status = 0;
  #statusText = '';
  #headers: RawAxiosResponseHeaders = {};
  #chunks: Buffer[] = [];
  #bytes = 0;
  #givenUp: AxiosError | undefined;

  constructor(config: InternalAxiosRequestConfig) {
    this.#config = config;
    const { maxContentLength = -1 } = config;
    this.#limit = maxContentLength < 0 ? Infinity : maxContentLength;
    this.response = new Promise((resolve, reject) => {
      this.#settle = { resolve, reject };
    });
    config.signal?.addEventListener?.('abort', this.#cancel);
  }

  readonly #cancel = (): void => {
    const reason = new CanceledError(undefined, this.#config, this);
    this.#unlink();
    this.#givenUp = reason;
    this.#settle.reject(reason); // undici would only say so once there is a connection
    this.#controller?.abort(reason);
  };

  onRequestStart(controller: Dispatcher.DispatchController): void {
    if (this.#givenUp) throw this.#givenUp; // leaves the connection to the next request
    this.#controller = controller;
    this.sent = true;
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: RawAxiosResponseHeaders,
    statusText = '',
  ): void {
    this.#status = status; // those of 1xx are overwritten
    this.#statusText = statusText;
    this.#headers = headers;
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#bytes += chunk.length;
    if (this.#bytes <= this.#limit) this.#chunks.push(chunk);
    else controller.abort(Object.assign(new Error('the response is too large'), { code: TOO_LARGE }));
  }

  onResponseEnd(): void {
    const body = Buffer.concat(this.#chunks, this.#bytes);
    const decompress = decompressorFor(this.#headers['content-encoding']);
    if (body.length === 0 || decompress === undefined) {
      this.#complete(body);
      return;
    }
    const maxOutputLength = Number.isFinite(this.#limit) ? this.#limit : undefined;
    decompress(body, { maxOutputLength }, (error, content) => {
      if (error) this.#fail(error);
      else this.#complete(content);
    });
  }

  onResponseError(_controller: Dispatcher.DispatchController | undefined, error: Error): void {
    this.#fail(error);
  }

  #complete(body: Buffer): void {
    this.#unlink();
    const response = {
      data: body.length === 0 ? '' : new TextDecoder().decode(body),
      status: this.#status,
      statusText: this.#statusText,
      headers: this.#headers,
      config: this.#config,
      request: this,
    };
    // undici frees the connection in an immediate of its own, which it asks for next. A request made before that would
    // open another one.
    queueMicrotask(() => setImmediate(this.#settle.resolve, response));
  }

  #fail(error: Error): void {
    if (this.#givenUp) return;
    this.#unlink();
    const { code } = error as NodeJS.ErrnoException;
    const failure = new AxiosError(error.message, systemCode(code), this.#config, this);
    failure.cause = error;
    this.#settle.reject(failure);
  }

  #unlink(): void {
    this.#config.signal?.removeEventListener?.('abort', this.#cancel);
  }
}

/** undici has codes of its own for what Node's own client names like the system does. */
function systemCode(code = 'UNKNOWN'): string {
  switch (code) {
    case 'UND_ERR_SOCKET':
    case 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH':
      return 'ECONNRESET'; // the other side closed the connection
    case 'UND_ERR_CONNECT_TIMEOUT':
    case 'ABORT_ERR':
      return 'ETIMEDOUT';
    default:
      return code;
  }
}
