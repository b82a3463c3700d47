/**
 * Pool's own file: `undici` itself, when imported, makes its agent the one of the host's `fetch`, for good
 * (`Symbol.for('undici.globalDispatcher.1')`).
 */
declare module 'undici/lib/dispatcher/pool.js' {
  export { Pool as default } from 'undici';
}
