import { Module } from '@nestjs/common';
import { DebateSpaceModule } from 'nestjs-debate-space';
import { postgresStorage } from 'nestjs-debate-space/postgres';
import { Pool } from 'pg';

export const pool = new Pool({ connectionString: process.env.DATABASE_URL, max: 1 });

@Module({
  imports: [
    DebateSpaceModule.forRoot({
      apiKey: process.env.DEBATE_SPACE_API_KEY ?? '',
      secretKey: process.env.DEBATE_SPACE_SECRET_KEY ?? '',
      applicationName: process.env.DEBATE_SPACE_APPLICATION_NAME ?? '',
      storage: postgresStorage({ pool }),
      storageKey: process.env.DEBATE_SPACE_STORAGE_KEY,
      worker: process.env.ROLE === 'worker',
    }),
  ],
})
export class AppModule {}
