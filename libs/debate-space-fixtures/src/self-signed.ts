import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

export interface SelfSigned {
  readonly key: Buffer;
  readonly cert: Buffer;
  /** The file of the certificate, for `NODE_EXTRA_CA_CERTS`. */
  readonly certFile: string;
}

/**
 * Makes a certificate for localhost that nobody else has signed.
 * @param folder where its files are put
 * @param more arguments of `openssl req`
 */
export async function selfSigned(folder: string, ...more: readonly string[]): Promise<SelfSigned> {
  const [keyFile, certFile] = [join(folder, 'key.pem'), join(folder, 'cert.pem')];
  const made = ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-subj', '/CN=localhost'];
  await promisify(execFile)('openssl', [...made, '-keyout', keyFile, '-out', certFile, ...more]);
  return { key: await readFile(keyFile), cert: await readFile(certFile), certFile };
}
