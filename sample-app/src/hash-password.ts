import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { Writable } from 'node:stream';
import { hashPassword } from './login/password-hash.js';

/** Prints the hash of a password, for ADMINISTRATORS and MEMBERS. The password is typed unseen, or comes from a pipe. */
const nowhere = new Writable({
  write: (_chunk, _encoding, done) => {
    done();
  },
});
const lines = createInterface({ input: process.stdin, output: nowhere, terminal: process.stdin.isTTY });
if (process.stdin.isTTY) process.stderr.write('Password (nothing shows while you type): ');
lines.once('close', () => process.stderr.isTTY && process.stderr.write('\n'));
const [password = ''] = (await Promise.race([once(lines, 'line'), once(lines, 'close')])) as [string?];
lines.close();
if (password.length < 8) {
  console.error('The password must have at least 8 characters.');
  process.exitCode = 1;
} else {
  console.log(await hashPassword(password));
}
