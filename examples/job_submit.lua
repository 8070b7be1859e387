-- /etc/slurm/job_submit.lua, with JobSubmitPlugins=lua in slurm.conf: batch scripts run under
-- cr_batch if their user asks for it,
--	sbatch --comment=kcr job.sh
--	sbatch --comment=kcr:interval=30m,keep=3 job.sh
-- and in these partitions unless the user says --comment=nokcr.
local kcr = dofile("/usr/share/kcr/slurm/kcr.lua")
kcr.partitions = { long = "interval=1h" }

function slurm_job_submit(job_desc, part_list, submit_uid)
	return kcr.job_submit(job_desc, part_list)
end

function slurm_job_modify(job_desc, job_rec, part_list, modify_uid)
	return slurm.SUCCESS
end

return slurm.SUCCESS
