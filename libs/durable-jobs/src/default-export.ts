/**
 * The default export of a CommonJS package that was imported as a namespace. Node.js puts the package under `default`;
 * a test runner that translates imports without `esModuleInterop` gives the package itself, and has no `default` for it.
 */
export function defaultExportOf(module: object): unknown {
  let exported: object = module;
  while ('default' in exported) exported = exported.default as object;
  return exported;
}
