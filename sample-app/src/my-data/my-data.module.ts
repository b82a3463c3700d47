import { Module } from '@nestjs/common';
import { AuthModule } from '../auth/auth.module.js';
import { MyDataController } from './my-data.controller.js';
import { ReceiptController } from './receipt.controller.js';

@Module({ imports: [AuthModule], controllers: [MyDataController, ReceiptController] })
export class MyDataModule {}
