import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { proxyFromEnv } from './proxy-from-env.js';

describe('the proxy of the environment', () => {
  const environment = { ...process.env };
  beforeEach(() => {
    for (const name of Object.keys(process.env)) {
      if (/_proxy$/i.test(name)) Reflect.deleteProperty(process.env, name);
    }
  });
  afterEach(() => {
    process.env = { ...environment };
  });
  const proxy = (address: string): string | undefined => proxyFromEnv(new URL(address))?.href;

  it.each([
    [{}, 'https://a.example', undefined],
    [{ HTTPS_PROXY: 'http://p:1' }, 'https://a.example', 'http://p:1/'],
    [{ https_proxy: 'http://p:1', HTTPS_PROXY: 'http://q:2' }, 'https://a.example', 'http://p:1/'],
    [{ https_proxy: '', HTTPS_PROXY: 'http://q:2' }, 'https://a.example', 'http://q:2/'],
    [{ HTTPS_PROXY: 'http://p:1' }, 'http://a.example', undefined],
    [{ HTTP_PROXY: 'http://p:1' }, 'https://a.example', undefined],
    [{ HTTP_PROXY: 'http://p:1' }, 'http://127.0.0.1:3000', 'http://p:1/'],
    [{ ALL_PROXY: 'http://p:1', HTTP_PROXY: 'http://q:2' }, 'http://a.example', 'http://q:2/'],
    [{ all_proxy: 'http://p:1' }, 'https://a.example', 'http://p:1/'],
    [{ HTTPS_PROXY: 'p:1' }, 'https://a.example', 'http://p:1/'],
  ])('of %j for %s is %s', (variables, address, expected) => {
    Object.assign(process.env, variables);
    expect(proxy(address)).toBe(expected);
  });

  it.each([
    ['a.example', 'https://a.example/path'],
    ['b.example, a.example', 'https://a.example'],
    ['b.example a.example', 'https://A.example'],
    ['example', 'https://a.example'],
    ['.example', 'https://a.example'],
    ['*.example', 'https://a.example'],
    ['*', 'https://a.example'],
    ['a.example:443', 'https://a.example'],
    ['a.example:8443', 'https://a.example:8443'],
    ['127.0.0.1', 'http://127.0.0.1:3000'],
    ['localhost', 'http://127.0.0.1:3000'],
    ['::1', 'http://[::1]:3000'],
    ['[::1]:3000', 'http://[::1]:3000'],
    ['10.0.0.0/8', 'http://10.1.2.3'],
    ['fd00::/8', 'http://[fd12::1]'],
  ])('is led around by NO_PROXY=%s for %s', (noProxy, address) => {
    Object.assign(process.env, { ALL_PROXY: 'http://p:1', NO_PROXY: noProxy });
    expect(proxy(address)).toBeUndefined();
  });

  it.each([
    ['b.example', 'https://a.example'],
    ['a.example', 'https://aa.example'],
    ['a.example:8443', 'https://a.example'],
    ['a.example:80', 'https://a.example'],
    ['10.0.0.0/8', 'http://11.1.2.3'],
    ['10.0.0.0/99', 'http://10.1.2.3'],
    ['10.0.0.0/8', 'https://10.example'],
    [',', 'https://a.example'],
  ])('is not led around by NO_PROXY=%s for %s', (noProxy, address) => {
    Object.assign(process.env, { ALL_PROXY: 'http://p:1', NO_PROXY: noProxy });
    expect(proxy(address)).toBe('http://p:1/');
  });
});
