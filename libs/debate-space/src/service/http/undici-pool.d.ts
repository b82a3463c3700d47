/**
 * Pool's own file: `undici` itself, when imported, makes its agent the one of the host's `fetch`, for good
 * (`Symbol.for('undici.globalDispatcher.1')`). undici-pool.spec.ts checks that a release still has the file.
 */
declare module 'undici/lib/dispatcher/pool.js' {
  export { Pool as default } from 'undici';
}
