import type { OptionProblem } from 'nestjs-debate-space';
import type { Settings } from '../settings.js';
import { variables } from '../variables.js';
import { fault, faultOfOption, fine, unchecked, type CheckResult } from './check.js';

const MIN_BYTES = 32; // of HS256: RFC 7518, section 3.2
const LOOKS_BASE64 = /^(?=.*[+/=A-Z])(?:[A-Za-z0-9+/]{4}){8,}(?:[A-Za-z0-9+/]{2,3}={0,2})?$/;
const HEX = /^[0-9a-f]+$/i;
const ONLY_A_LOGOUT = 'only a logout that the service takes proves how it reads the key';

/** What is set at all, and whether the plugin would take it. @param refused what the plugin says of them */
export function* checkValues(
  { problems, storage }: Settings,
  refused: readonly OptionProblem[],
): Generator<CheckResult> {
  const wrong = [...problems, ...refused];
  for (const problem of wrong) yield faultOfOption('values', problem);
  if (wrong.length === 0) {
    yield fine(
      'values',
      `API key, secret key, application name and address are set; storage: ${storage.engine}`,
    );
  }
}

/** Of the signing key: its length, and how it is read. */
export function* checkSecret({ secretKey, secretKeyEncoding = 'utf8' }: Settings): Generator<CheckResult> {
  if (secretKey === undefined) {
    yield unchecked('secret-length', 'there is no secret key');
    yield unchecked('secret-encoding', 'there is no secret key');
    return;
  }
  const { length } = Buffer.from(secretKey, secretKeyEncoding);
  const read = secretKeyEncoding === 'base64' ? ' after Base64 is decoded' : '';
  yield length >= MIN_BYTES
    ? fine('secret-length', `${length} bytes${read}`)
    : fault(
        'secret-length',
        `the signing key has ${length} bytes${read}; HS256 wants at least ${MIN_BYTES} (RFC 7518, section 3.2)`,
        `Copy the whole key from the administration panel, Configuration > General, into ${variables.secretKey}, or have a longer one made there.`,
      );
  const isBase64 = LOOKS_BASE64.test(secretKey) && !HEX.test(secretKey);
  const hint =
    secretKeyEncoding === 'utf8' && isBase64
      ? `; it looks like Base64: if the service decodes it, set ${variables.secretKeyEncoding}=base64`
      : '';
  yield fine('secret-encoding', `read as ${secretKeyEncoding}${hint}; ${ONLY_A_LOGOUT}`);
}
