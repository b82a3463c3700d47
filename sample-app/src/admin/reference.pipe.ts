import { Injectable, NotFoundException, type PipeTransform } from '@nestjs/common';

/** The `reference` of the query, which is missing or repeated in a mistyped address. */
@Injectable()
export class ReferencePipe implements PipeTransform<unknown, string> {
  transform(value: unknown): string {
    if (typeof value === 'string' && value !== '') return value;
    throw new NotFoundException('There is no erasure of this reference.');
  }
}
