import { FORM_MEDIA_TYPE, hasMediaType } from './media-type.js';
import { Refusal } from './refusal.js';
import type { ServiceCall } from './service-call.js';

/**
 * The form-style parameters of a request (sections 4.1 and 4.5).
 * @throws Refusal 400 `invalid_request` for another media type or a repeated parameter (RFC 6749, section 3.2)
 */
export function formFields(call: ServiceCall): ReadonlyMap<string, string> {
  if (!hasMediaType(call.headers['content-type'], FORM_MEDIA_TYPE)) {
    throw Refusal.oauth(400, 'invalid_request', `Content-Type must be ${FORM_MEDIA_TYPE}`);
  }
  const fields = new Map<string, string>();
  for (const [name, value] of new URLSearchParams(call.body)) {
    if (fields.has(name)) throw Refusal.oauth(400, 'invalid_request', `${name} is given more than once`);
    fields.set(name, value);
  }
  return fields;
}
