import { expect, it } from '@jest/globals';
import { applicationKey } from './application.js';

it('each application name has a key of its own that every engine can keep', () => {
  const odd = ['my app', 'my-app ', 'é', 'e\u0301', 'a/b', 'a.b', '🗑', 'x'.repeat(99)];
  const many = Array.from({ length: 2_000 }, (_, n) => `app ${n}`); // some of their hashes have no capital letter
  const plain = ['my-app', 'My-App', 'my_app', 'debate-space-production'];
  for (const name of plain) expect(applicationKey(name)).toBe(name);
  const names = [...odd, ...many, ...plain];
  const keys = [...new Set([...names, ...names.map(applicationKey)])].map(applicationKey);
  for (const key of keys) expect(key).toMatch(/^[\w-]{1,64}$/);
  expect(new Set(keys).size).toBe(keys.length);
});
