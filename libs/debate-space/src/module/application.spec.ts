import { expect, it } from '@jest/globals';
import { applicationKey } from './application.js';

it('each application name has a key of its own that every engine can keep', () => {
  const names = [
    'my-app',
    'My-App',
    'my_app',
    'my app',
    'my-app ',
    'é',
    'e\u0301',
    'a/b',
    'a.b',
    '🗑',
    'x'.repeat(99),
  ];
  const all = [...names, ...names.map(applicationKey), ...names.map((name) => name.replace(/[^\w-]/g, '_'))];
  const keys = [...new Set(all)].map(applicationKey);
  for (const key of keys) expect(key).toMatch(/^[\w-]{26,64}$/);
  // As a database that tells no case would compare them.
  expect(new Set(keys.map((key) => key.toLowerCase())).size).toBe(keys.length);
  expect(applicationKey('my-app')).toMatch(/^my-app-/);
});
