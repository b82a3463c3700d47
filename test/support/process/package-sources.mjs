// Resolves the packages of this workspace for typescript.mjs, as jest.config.js has it for the tests.
const libs = new URL('../../../libs/', import.meta.url);

export function resolve(specifier, context, next) {
  const [, part = 'index'] = /^nestjs-debate-space(?:\/([\w-]+))?$/.exec(specifier) ?? [];
  if (specifier.startsWith('nestjs-debate-space')) {
    return { url: new URL(`debate-space/src/${part}.ts`, libs).href, shortCircuit: true };
  }
  if (specifier === 'debate-space-simulator') {
    return { url: new URL('debate-space-simulator/src/index.ts', libs).href, shortCircuit: true };
  }
  return next(specifier, context);
}
