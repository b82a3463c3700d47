export const JSON_MEDIA_TYPE = 'application/json';
export const FORM_MEDIA_TYPE = 'application/x-www-form-urlencoded';

/** Whether a `Content-Type` header names this media type, parameters such as `charset` aside. */
export function hasMediaType(contentType: string | undefined, mediaType: string): boolean {
  return contentType?.split(';', 1)[0]?.trim().toLowerCase() === mediaType;
}
