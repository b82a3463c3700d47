import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
import type { MulterModuleOptions, MulterOptionsFactory } from '@nestjs/platform-express';

/** A list that an administrator has sent, as multer describes it. */
export interface UploadedList {
  readonly path: string;
  readonly originalname: string;
}

/** A million users, and some. */
const MAX_BYTES = 100 * 1024 * 1024;

/** Lists are kept on disk while they are read, never in memory, in a folder that no other user of this machine may open. */
@Injectable()
export class UploadedLists implements MulterOptionsFactory, OnApplicationShutdown {
  folder = '';

  async createMulterOptions(): Promise<MulterModuleOptions> {
    this.folder = await mkdtemp(join(tmpdir(), 'erasure-lists-'));
    return { dest: this.folder, limits: { fileSize: MAX_BYTES, files: 1, fields: 10 } };
  }

  async onApplicationShutdown(): Promise<void> {
    if (this.folder !== '') await rm(this.folder, { recursive: true, force: true });
  }
}
