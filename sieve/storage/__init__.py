"""Bytes in a place: read, create if absent, list, delete, on local disks, HDFS and S3."""
